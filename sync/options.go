package wsync

// The defaults of Options.
const (
	defaultPackSize   = 8 << 20
	defaultSmallFile  = 256 << 10
	defaultParallel   = 4
	defaultMaxEntries = 500_000
	defaultMaxBytes   = 50 << 30
	defaultMaxState   = 64 << 20
)

// withDefaults fills zero fields, and keeps PackSize and SmallFile so that a pack stays within what a Pull accepts.
func (o Options) withDefaults() Options {
	o.PackSize = orDefault(o.PackSize, defaultPackSize)
	o.SmallFile = orDefault(o.SmallFile, defaultSmallFile)
	o.Parallel = orDefault(o.Parallel, defaultParallel)
	o.MaxEntries = orDefault(o.MaxEntries, defaultMaxEntries)
	o.MaxBytes = orDefault(o.MaxBytes, defaultMaxBytes)
	o.MaxStateBytes = orDefault(o.MaxStateBytes, defaultMaxState)
	o.PackSize = min(o.PackSize, maxPack/4)
	o.SmallFile = min(o.SmallFile, o.PackSize)
	return o
}

func orDefault[T int | int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}
