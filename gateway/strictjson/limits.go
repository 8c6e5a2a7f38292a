package strictjson

// Limits holds the limits of a document. For a field that is zero or negative, the limit in [DefaultLimits] applies.
type Limits struct {
	// Depth is the maximum nesting of arrays and objects. A string has depth 0, and [] has depth 1.
	Depth int
	// Values is the maximum number of values in the document, including containers.
	Values int
	// NumberChars is the maximum length of a number.
	NumberChars int
	// Exponent is the maximum absolute value of a number's exponent.
	Exponent int
	// AllowControls permits all escaped control characters. If it is false, strings must not contain U+0000, and member names must not contain
	// control characters.
	AllowControls bool
	// UncountedNumbers excludes numbers in lists from the limit Values if the lists are in the raw member of [DecodeWithRaw]. The number of
	// values in embeddings and samples is then limited only by the size of the document.
	UncountedNumbers bool
	// NormalizeIntegers converts integral numbers to plain digits. For example, 20.0 and 2e1 become 20.
	NormalizeIntegers bool
}

// DefaultLimits returns the limits for request bodies of the v2, v1 and GraphQL interfaces. They permit as many values as fit into 102400
// bytes. The size of bodies is limited elsewhere.
//
// The limits on numbers reject only numbers that are expensive to process: arithmetic with 1e1000000 takes a tenth of a second, whereas
// arithmetic with 1e999 takes microseconds.
func DefaultLimits() Limits {
	return Limits{Depth: 32, Values: 102_400, NumberChars: 32, Exponent: 999, NormalizeIntegers: true}
}

// RunLimits returns the limits for request bodies of the run interface. The worker defines the input in such a body, which may be one long
// string or a list of numbers. The size of bodies is limited elsewhere.
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

// ResponseLimits returns the limits of [DecodeLenient], which are far above the limits for requests.
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
