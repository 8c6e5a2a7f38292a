package strictjson

// Limits holds the limits of a document. A field that is zero or negative takes its value from DefaultLimits.
type Limits struct {
	// Depth is the maximum nesting of arrays and objects; a bare string has depth 0, [] has depth 1.
	Depth int
	// Values is the maximum number of values in the document, including containers.
	Values int
	// NumberChars is the maximum length of a number.
	NumberChars int
	// Exponent is the maximum absolute value of a number's exponent.
	Exponent int
	// AllowControls allows every properly escaped control character. If it is false, strings must not contain U+0000, and
	// member names no control characters.
	AllowControls bool
	// UncountedNumbers excludes the numbers in lists of the raw member of DecodeWithRaw from the limit on values, so that
	// embeddings and samples are limited only by the size of the document.
	UncountedNumbers bool
	// NormalizeIntegers converts integral numbers to plain digits: 20.0 and 2e1 become 20.
	NormalizeIntegers bool
}

// DefaultLimits returns the limits for request bodies of the v2, v1 and GraphQL interfaces, whose size is limited
// separately. They allow as many values as fit into 102400 bytes.
//
// The limits on numbers reject only harmful ones: arithmetic on 1e1000000 takes a tenth of a second, on 1e999
// microseconds.
func DefaultLimits() Limits {
	return Limits{Depth: 32, Values: 102_400, NumberChars: 32, Exponent: 999, NormalizeIntegers: true}
}

// RunLimits returns the limits for bodies of the run interface, whose size is limited separately. Their input is defined
// by the worker and may be one long string or a list of numbers.
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

// ResponseLimits returns the limits of DecodeLenient, which are far above those for requests.
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
