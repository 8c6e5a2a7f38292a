package strictjson

import (
	"errors"
	"fmt"
	"sync"
)

// ErrTooManyNumbers is the error of a Raw that has more numbers in lists than a document may
// have values.
var ErrTooManyNumbers = errors.New("a list of numbers is too long for policies to read")

// Raw is a value that is known to be strict JSON and is not decoded before it is
// looked at. It stands in the place of its value in what DecodeAround returns, and
// is written as it was spelled.
type Raw struct {
	data []byte
	lim  Limits

	once  sync.Once
	value any
}

// maxSmall is the length up to which an array or object within a Raw is decoded
// together with it.
const maxSmall = 4 << 10

// maxTogether is how many bytes of arrays and objects within a Raw are decoded together with
// it.
const maxTogether = 1 << 20

// Decoded returns the value, as Decode would. Members of it that are large objects
// or arrays are themselves of type *Raw. A Raw that is too long is ErrLong.
func (r *Raw) Decoded() any {
	r.once.Do(func() { r.value = r.decode() })
	return r.value
}

func (r *Raw) decode() any {
	together := 0
	large := func(_ string, value []byte) bool {
		if value[0] != '{' && value[0] != '[' {
			return false
		}
		together += len(value)
		return len(value) > maxSmall || together > maxTogether
	}
	if at(r.data, 0) == '{' {
		if v, _ := outline(r.data, r.lim, "", large); v != nil {
			return v
		}
	}
	b := builder{data: r.data, text: inPlace(r.data), lim: r.lim.orDefault()}
	if v, ok := b.document(); ok {
		return v
	}
	return ErrTooManyNumbers // nothing else is wrong with it
}

// MarshalJSON implements json.Marshaler.
func (r *Raw) MarshalJSON() ([]byte, error) { return r.data, nil }

// DecodeWithRaw is DecodeInPlace for a document that is an object with one large
// member that is seldom looked at: its value is a *Raw.
func DecodeWithRaw(data []byte, member string, l Limits) (any, error) {
	if l.AllowControls && !l.NormalizeIntegers { // otherwise what is spelled is not always the value
		v, fault := outline(data, l, member, func(name string, _ []byte) bool { return name == member })
		switch {
		case v != nil:
			return v, nil
		case fault != nil && fault.Code == CodeValues:
			return refuse(data, fault)
		case fault != nil && l.UncountedNumbers:
			v, err := DecodeInPlace(data, l)
			if e, ok := errors.AsType[*SyntaxError](err); ok && e.Code == CodeValues {
				return refuse(data, fault) // which is further on
			}
			return v, err
		}
	}
	return DecodeInPlace(data, l)
}

// outline decodes a text that is an object, but for the values of its members that
// are to be kept as they are. In those of one name, numbers in lists are not counted, if
// the limits say so, nor in any when the name is empty. v is nil for any other text, and
// for one that is not accepted, with its fault, unless it is no object.
func outline(data []byte, l Limits, free string, keep func(name string, value []byte) bool) (v map[string]any, fault *SyntaxError) {
	var few [8]outermost
	s := scanner{data: data, lim: l.orDefault(), why: CodeSyntax, keepsMembers: true, members: few[:0], free: free}
	if at(data, space(data, 0)) != '{' {
		return nil, nil
	}
	if !s.document() {
		return nil, &SyntaxError{Offset: int64(s.stop), Code: s.why, Message: map[Code]string{
			CodeValues: fmt.Sprintf("the document has more than %d values", s.lim.Values), CodeDuplicate: "a member name is used twice",
			CodeDepth: fmt.Sprintf("arrays and objects are nested more than %d deep", s.lim.Depth), CodeSyntax: "the text is not JSON",
		}[s.why]}
	}
	v = make(map[string]any, len(s.members))
	for _, m := range s.members {
		if keep(m.name, m.value) {
			v[m.name] = &Raw{data: m.value, lim: l}
		} else {
			v[m.name] = accepted(m.value, l)
		}
	}
	return v, nil
}

// accepted decodes a text that the scanner has accepted.
func accepted(data []byte, l Limits) any {
	v, err := DecodeInPlace(data, l)
	if err != nil {
		panic("strictjson: a text that was accepted is refused: " + err.Error())
	}
	return v
}
