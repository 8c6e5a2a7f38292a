package strictjson

import "sync"

// Raw is a value that is known to be strict JSON and is not decoded before it is
// looked at. It stands in the place of its value in what DecodeAround returns, and
// is written as it was spelled.
type Raw struct {
	data  []byte
	lim   Limits
	value func() any
}

func newRaw(data []byte, l Limits) *Raw {
	r := &Raw{data: data, lim: l}
	r.value = sync.OnceValue(r.decode)
	return r
}

// maxSmall is the length up to which an array or object within a Raw is decoded
// together with it.
const maxSmall = 4 << 10

// Decoded returns the value, as Decode would. Members of it that are large objects
// or arrays are themselves of type *Raw.
func (r *Raw) Decoded() any { return r.value() }

func (r *Raw) decode() any {
	large := func(_ string, value []byte) bool {
		return len(value) > maxSmall && (value[0] == '{' || value[0] == '[')
	}
	if v, ok := outline(r.data, r.lim, large); ok {
		return v
	}
	return accepted(r.data, r.lim)
}

// MarshalJSON implements json.Marshaler.
func (r *Raw) MarshalJSON() ([]byte, error) { return r.data, nil }

// DecodeAround is DecodeInPlace for a document that is an object with one large
// member that is seldom looked at: its value is a *Raw.
func DecodeAround(data []byte, member string, l Limits) (any, error) {
	if l.Controls && !l.Plain { // otherwise what is spelled is not always the value
		if v, ok := outline(data, l, func(name string, _ []byte) bool { return name == member }); ok {
			return v, nil
		}
	}
	return DecodeInPlace(data, l)
}

// outline decodes a text that is an object, but for the values of its members that
// are to be kept as they are. ok is false for any other text, and for one that is not
// within the limits.
func outline(data []byte, l Limits, keep func(name string, value []byte) bool) (v map[string]any, ok bool) {
	type member struct {
		name  string
		value []byte
	}
	var few [8]member
	members := few[:0]
	s := scanner{data: data, lim: l.orDefault()}
	s.visit = func(name string, from, to int) { members = append(members, member{name, data[from:to]}) }
	if at(data, space(data, 0)) != '{' || !s.document() {
		return nil, false
	}
	v = make(map[string]any, len(members))
	for _, m := range members {
		if keep(m.name, m.value) {
			v[m.name] = newRaw(m.value, l)
		} else {
			v[m.name] = accepted(m.value, l)
		}
	}
	return v, true
}

// accepted decodes a text that the scanner has accepted.
func accepted(data []byte, l Limits) any {
	v, err := DecodeInPlace(data, l)
	if err != nil {
		panic("strictjson: a text that was accepted is refused: " + err.Error())
	}
	return v
}
