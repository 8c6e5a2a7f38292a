package strictjson

// Limits bounds the documents that Decode accepts. A field of zero or less stands for the
// same field of DefaultLimits, so the zero value is safe.
type Limits struct {
	// Depth is the number of arrays and objects that may be open at once; a
	// bare string has depth 0, [] has depth 1.
	Depth int
	// Values is the number of values in the whole document, containers and
	// scalars counted alike.
	Values int
	// NumberChars is the length of one number as it is spelled.
	NumberChars int
	// Exponent is the largest absolute value of a number's exponent.
	Exponent int
	// AllowControls admits every control character that is properly escaped. When
	// false, strings may hold all but U+0000, and member names none.
	AllowControls bool
	// UncountedNumbers says that DecodeAround does not count the numbers in the lists of the
	// member that it keeps, so that embeddings and samples are as long as they fit.
	UncountedNumbers bool
	// NormalizeIntegers writes whole numbers in plain digits: 20.0 and 2e1 become 20.
	NormalizeIntegers bool
}

// DefaultLimits returns the bounds for request bodies of the REST, v1 and
// GraphQL interfaces, whose size is bounded in bytes: as many values, and strings
// as long, as fit into 102400 bytes.
//
// The number bounds refuse only dangerous numbers: arithmetic on 1e1000000
// takes a tenth of a second, on 1e999 microseconds.
func DefaultLimits() Limits {
	return Limits{Depth: 32, Values: 102_400, NumberChars: 32, Exponent: 999, NormalizeIntegers: true}
}

// RunLimits returns the bounds for bodies of the run interface, whose size is
// bounded in bytes: their input is the worker's, and may be one long string or a
// list of numbers.
func RunLimits() Limits {
	return Limits{
		Depth:            64,
		Values:           400_000,
		NumberChars:      64,
		Exponent:         999,
		AllowControls:    true,
		UncountedNumbers: true,
	}
}

// ResponseLimits returns the bounds of DecodeLenient: generous, but still bounds.
func ResponseLimits() Limits {
	return Limits{
		Depth:         128,
		Values:        4_000_000,
		NumberChars:   512,
		Exponent:      9999,
		AllowControls: true,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ have, def *int }{
		{&l.Depth, &d.Depth},
		{&l.Values, &d.Values},
		{&l.NumberChars, &d.NumberChars},
		{&l.Exponent, &d.Exponent},
	} {
		if *f.have <= 0 {
			*f.have = *f.def
		}
	}
	return l
}
