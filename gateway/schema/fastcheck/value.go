package fastcheck

import (
	"encoding/json"
	"hash/maphash"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// addValues adds the demands on values of every type.
func (b *builder) addValues(n *node, s *jsonschema.Schema) {
	if len(s.Constant) > 0 {
		n.values = append(n.values, oneOf(s.Constant[:1]))
	}
	if len(s.Enum) > 0 {
		n.values = append(n.values, oneOf(s.Enum))
	}
	if s.Format != "" {
		if valid := b.format(s.Format); valid != nil {
			n.values = append(n.values, func(v any) verdict { return verdictOf(valid(v)) })
		}
	}
}

// format returns the function that judges a format, nil when nothing does: the
// compiler's own come before those of the package.
func (b *builder) format(name string) func(any) bool {
	if f, ok := b.settings.Formats[name]; ok {
		return f
	}
	return jsonschema.Formats[name]
}

// oneOf demands to equal one of allowed.
func oneOf(allowed []any) test[any] {
	if words, ok := allWords(allowed); ok {
		return func(v any) verdict {
			word, ok := v.(string)
			return verdictOf(ok && slices.Contains(words, word))
		}
	}
	return func(v any) verdict {
		for _, a := range allowed {
			if r := equal(v, a); r != no {
				return r
			}
		}
		return no
	}
}

func allWords(values []any) (words []string, ok bool) {
	for _, v := range values {
		word, ok := v.(string)
		if !ok {
			return nil, false
		}
		words = append(words, word)
	}
	return words, true
}

// equal compares values as JSON Schema does: numbers by what they are worth,
// objects without order.
func equal(v, w any) verdict {
	t := typeOf(v)
	if u := typeOf(w); t == 0 || u == 0 {
		return unsure
	} else if t != u {
		return no
	}
	switch v := v.(type) {
	case map[string]any:
		w, _ := w.(map[string]any)
		return equalObjects(v, w)
	case []any:
		w, _ := w.([]any)
		return equalArrays(v, w)
	case json.Number:
		w, _ := w.(json.Number)
		return equalNumbers(v, w)
	}
	return verdictOf(v == w)
}

func equalObjects(v, w map[string]any) verdict {
	if len(v) != len(w) {
		return no
	}
	for name, item := range v {
		other, ok := w[name]
		if !ok {
			return no
		}
		if r := equal(item, other); r != yes {
			return r
		}
	}
	return yes
}

func equalArrays(v, w []any) verdict {
	if len(v) != len(w) {
		return no
	}
	for i, item := range v {
		if r := equal(item, w[i]); r != yes {
			return r
		}
	}
	return yes
}

func equalNumbers(v, w json.Number) verdict {
	d, ok := parseDecimal(string(v))
	if !ok {
		return unsure
	}
	e, ok := parseDecimal(string(w))
	if !ok {
		return unsure
	}
	return verdictOf(d == e)
}

// hash returns a number that is the same for values that are equal. It returns
// false for what cannot be compared.
func hash(seed maphash.Seed, v any) (uint64, bool) {
	switch v := v.(type) {
	case map[string]any:
		sum := uint64(typeObject) // members have no order
		for name, item := range v {
			h, ok := hash(seed, item)
			if !ok {
				return 0, false
			}
			sum += maphash.Comparable(seed, [2]uint64{maphash.String(seed, name), h})
		}
		return sum, true
	case []any:
		sum := uint64(typeArray)
		for _, item := range v {
			h, ok := hash(seed, item)
			if !ok {
				return 0, false
			}
			sum = maphash.Comparable(seed, [2]uint64{sum, h})
		}
		return sum, true
	case string:
		return maphash.String(seed, v), true
	case json.Number:
		d, ok := parseDecimal(string(v))
		return maphash.Comparable(seed, d), ok
	case bool:
		return maphash.Comparable(seed, v), true
	}
	return uint64(typeNull), v == nil
}
