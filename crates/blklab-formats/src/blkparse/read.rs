pub struct BlkparseReader;
