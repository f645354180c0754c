pub struct BlktraceReader;
