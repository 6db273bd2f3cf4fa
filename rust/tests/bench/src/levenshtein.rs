//! The edit distance, by the kernel of examples/levenshtein: a cell holds what is saved against
//! deleting one string and inserting the other.

use std::mem::swap;

/// Cells of a step: 0.5 to 2 us.
const BLOCK: usize = 1024;

pub struct Table<'a> {
    /// The shorter one.
    a: &'a [u8],
    b: &'a [u8],
    /// The next cell.
    i: usize,
    j: usize,
    /// Up to `i` of row `j`, the rest of the row before.
    row: Vec<u32>,
    left: u32,
    diagonal: u32,
}

impl<'a> Table<'a> {
    pub fn new(mut a: &'a [u8], mut b: &'a [u8]) -> Table<'a> {
        if a.len() > b.len() {
            swap(&mut a, &mut b);
        }
        Table { a, b, i: 0, j: 0, row: vec![0; a.len()], left: 0, diagonal: 0 }
    }

    /// Computes the next cells, at most a block. Answers how many; 0 when all are.
    pub fn step(&mut self) -> usize {
        let mut done = 0;
        while done < BLOCK && self.j < self.b.len() && !self.a.is_empty() {
            let cells = (self.a.len() - self.i).min(BLOCK - done);
            self.cells(cells);
            done += cells;
            self.i += cells;
            if self.i == self.a.len() {
                (self.i, self.j, self.left, self.diagonal) = (0, self.j + 1, 0, 0);
            }
        }
        done
    }

    /// Computes cells of one row.
    fn cells(&mut self, cells: usize) {
        let (byte, part) = (self.b[self.j], self.i..self.i + cells);
        let (mut left, mut diagonal) = (self.left, self.diagonal);
        for (cell, a) in self.row[part.clone()].iter_mut().zip(&self.a[part]) {
            let up = *cell;
            left = left.max(up.max(diagonal + 1 + u32::from(*a == byte)));
            *cell = left;
            diagonal = up;
        }
        (self.left, self.diagonal) = (left, diagonal);
    }

    pub fn distance(&self) -> usize {
        let saved = self.row.last().map_or(0, |cell| *cell as usize);
        self.a.len() + self.b.len() - saved
    }
}
