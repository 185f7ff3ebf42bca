//! Derived search structures.
//!
//! Owns everything that can be rebuilt from the records: nothing in here is durable, nothing is
//! ever written to disk, and losing it loses no memory. Sealing, storing and authorising are the
//! business of the rest of the engine.

pub mod text;
