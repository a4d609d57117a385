//! The HPC Pack dialect: job XML, options and template XML in; typed descriptions, tables and messages out.
