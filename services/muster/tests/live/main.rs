//! The real program: `muster up` in a temporary folder, and the commands that people type.

mod book;
mod configuration;
mod end_to_end;
mod explain;
mod external_planner;
mod filters;
mod hpcpack;
mod hpcpack_modes;
mod reservations;
mod slurm;
mod slurm_accounts;
mod slurm_changes;
mod slurm_clients;
mod slurm_commands;
mod slurm_components;
mod slurm_faults;
mod slurm_habits;
mod slurm_jobs;
mod slurm_mail;
mod slurm_numbers;
mod slurm_staging;
mod slurm_steps;
mod steps;
mod system;
mod whatif;
