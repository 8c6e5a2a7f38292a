package strictjson

// Limits bounds what Decode accepts. A field of zero or less stands for the
// same field of DefaultLimits, so the zero value is safe.
type Limits struct {
	// Depth is the number of arrays and objects that may be open at once; a
	// bare string has depth 0, [] has depth 1.
	Depth int
	// Members is the number of members one object may have.
	Members int
	// Items is the number of elements one array may have.
	Items int
	// Values is the number of values in the whole document, containers and
	// scalars counted alike.
	Values int
	// StringBytes is the length of one string or member name in bytes, after
	// unescaping.
	StringBytes int
	// NumberChars is the length of one number as it is spelled.
	NumberChars int
	// Exponent is the largest absolute value of a number's exponent.
	Exponent int
	// Controls admits control characters that are properly escaped in strings,
	// U+0000 among them. When false only tab, line feed and carriage return
	// pass, and in member names none.
	Controls bool
}

// DefaultLimits returns the bounds for request bodies of the REST, v1 and
// GraphQL interfaces.
//
// The number bounds refuse only what is dangerous: arithmetic on 1e1000000
// takes a tenth of a second, on 1e999 microseconds. Which spellings an integer
// may have (1e0, 1.0 and 80e-1 are none) is the schema's business, because
// there the fault has a place and a type.
func DefaultLimits() Limits {
	return Limits{
		Depth:       32,
		Members:     256,
		Items:       1000,
		Values:      4096,
		StringBytes: 64 << 10,
		NumberChars: 32,
		Exponent:    999,
	}
}

// RunLimits returns the bounds for bodies of the run interface, whose size is
// bounded in bytes: their input is the worker's, and may be one long string or a
// list of numbers.
func RunLimits() Limits {
	return Limits{
		Depth:       64,
		Members:     10_000,
		Items:       200_000,
		Values:      400_000,
		StringBytes: 20 << 20,
		NumberChars: 64,
		Exponent:    999,
		Controls:    true,
	}
}

// AnswerLimits returns the bounds of DecodeLenient: generous, but still bounds.
func AnswerLimits() Limits {
	return Limits{
		Depth:       128,
		Members:     100_000,
		Items:       1_000_000,
		Values:      4_000_000,
		StringBytes: 16 << 20,
		NumberChars: 512,
		Exponent:    9999,
		Controls:    true,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ have, def *int }{
		{&l.Depth, &d.Depth},
		{&l.Members, &d.Members},
		{&l.Items, &d.Items},
		{&l.Values, &d.Values},
		{&l.StringBytes, &d.StringBytes},
		{&l.NumberChars, &d.NumberChars},
		{&l.Exponent, &d.Exponent},
	} {
		if *f.have <= 0 {
			*f.have = *f.def
		}
	}
	return l
}
