//! Where the processes of a program are.

use crate::MAX_VALUE_BYTES;

/// The nodes of a program's processes, and which of them are here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// For each process in order of rank, its node: a number from 0, the same for all processes there.
    node_of_rank: Vec<u32>,
    /// The ranks that this server serves, in order.
    local: Vec<u32>,
}

/// Consecutive ranks on consecutive nodes, with the same number of them on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    node: u32,
    nodes: u32,
    ranks_on_each: u32,
}

impl Layout {
    /// `node_of_rank` has the node of each process in order of rank; `local` are the ranks of this server's processes.
    pub fn new(node_of_rank: Vec<u32>, mut local: Vec<u32>) -> Self {
        local.sort_unstable();
        Self { node_of_rank, local }
    }

    /// Number of processes of the program.
    pub fn size(&self) -> usize {
        self.node_of_rank.len()
    }

    /// The ranks of this server's processes.
    pub fn local(&self) -> &[u32] {
        &self.local
    }

    /// The value of `PMI_process_mapping`, from which programs learn who shares a node with them: blocks of
    /// `(first node, number of nodes, processes on each)`, repeated until each process has its place. `None` if it
    /// would be longer than a value may be; programs then compare the names of their nodes.
    pub fn process_mapping(&self) -> Option<String> {
        let blocks = self.blocks();
        let texts: Vec<String> = shortest_period(&blocks)
            .iter()
            .map(|Block { node, nodes, ranks_on_each }| format!("({node},{nodes},{ranks_on_each})"))
            .collect();
        Some(format!("(vector,{})", texts.join(","))).filter(|text| text.len() < MAX_VALUE_BYTES)
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for same in self.node_of_rank.chunk_by(|one, other| one == other) {
            let (node, ranks) = (same[0], same.len() as u32);
            match blocks.last_mut() {
                Some(last) if last.ranks_on_each == ranks && last.node.checked_add(last.nodes) == Some(node) => {
                    last.nodes += 1;
                }
                _ => blocks.push(Block { node, nodes: 1, ranks_on_each: ranks }),
            }
        }
        blocks
    }
}

/// The shortest beginning whose repetition gives all of it.
fn shortest_period(blocks: &[Block]) -> &[Block] {
    let repeats = |period: &usize| {
        blocks.len().is_multiple_of(*period) && blocks.iter().zip(&blocks[*period..]).all(|(one, other)| one == other)
    };
    let period = (1..blocks.len()).find(repeats).unwrap_or(blocks.len());
    &blocks[..period]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(nodes: &[u32]) -> Option<String> {
        Layout::new(nodes.to_vec(), Vec::new()).process_mapping()
    }

    /// SL-W-04
    #[test]
    fn the_mapping_names_blocks_of_nodes() {
        for (nodes, expected) in [
            (&[0, 0, 1, 1][..], "(vector,(0,2,2))"),
            (&[0, 1, 2, 3], "(vector,(0,4,1))"),
            (&[0, 1, 0, 1], "(vector,(0,2,1))"),
            (&[0, 0, 0, 1], "(vector,(0,1,3),(1,1,1))"),
            (&[1, 1, 0], "(vector,(1,1,2),(0,1,1))"),
            (&[0], "(vector,(0,1,1))"),
            (&[], "(vector,)"),
        ] {
            assert_eq!(mapping(nodes).as_deref(), Some(expected), "{nodes:?}");
        }
    }

    #[test]
    fn a_mapping_that_is_no_value_is_left_out() {
        let scattered: Vec<u32> = (0..2_000).map(|rank: u32| rank * rank % 97).collect();
        assert_eq!(mapping(&scattered), None);
    }

    /// The reverse, as programs do it: a mapping gives each rank its node again.
    fn nodes(mapping: &str, size: usize) -> Vec<u32> {
        let numbers: Vec<u32> =
            mapping.split(|character: char| !character.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        let blocks = numbers.chunks(3).flat_map(|block| {
            (block[0]..block[0] + block[1]).flat_map(|node| std::iter::repeat_n(node, block[2] as usize))
        });
        let once: Vec<u32> = blocks.collect();
        once.iter().copied().cycle().take(size).collect()
    }

    proptest::proptest! {
        #[test]
        fn a_mapping_can_be_read_back(layout in proptest::collection::vec(0u32..4, 1..24)) {
            let mapping = mapping(&layout).unwrap();
            proptest::prop_assert_eq!(nodes(&mapping, layout.len()), layout);
        }
    }
}
