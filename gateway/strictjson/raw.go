package strictjson

import (
	"errors"
	"fmt"
	"sync"
)

// ErrTooManyNumbers is returned by [Raw.Decoded] if the lists in the value contain more numbers than a document may have values.
var ErrTooManyNumbers = errors.New("list of numbers is too long for policy evaluation")

// Raw is a validated JSON value that is decoded only when it is needed. The result of [DecodeWithRaw] contains a Raw in place of the value.
// [Append] encodes a Raw in its original spelling.
type Raw struct {
	data []byte
	lim  Limits

	once  sync.Once
	value any
}

// maxSmall is the maximum size, in bytes, of an array or object that is decoded together with the Raw that contains it.
const maxSmall = 4 << 10

// maxTogether is the maximum total size in bytes of arrays and objects that are decoded together with a Raw.
const maxTogether = 1 << 20

// Decoded returns the decoded value. Large objects and arrays in the value have the type *Raw. If the value contains too many numbers,
// Decoded returns [ErrTooManyNumbers] in place of the value.
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
	return ErrTooManyNumbers // the only possible error
}

// MarshalJSON implements json.Marshaler.
func (r *Raw) MarshalJSON() ([]byte, error) { return r.data, nil }

// DecodeWithRaw is like [DecodeInPlace], but does not decode the value of one member of the outermost object. In the result, this member
// has a *Raw. Use it for a large member whose value is rarely needed.
func DecodeWithRaw(data []byte, member string, l Limits) (any, error) {
	if l.AllowControls && !l.NormalizeIntegers { // otherwise the text and the value may differ
		v, fault := outline(data, l, member, func(name string, _ []byte) bool { return name == member })
		switch {
		case v != nil:
			return v, nil
		case fault != nil && fault.Code == CodeValues:
			return refuse(data, fault)
		case fault != nil && l.UncountedNumbers:
			v, err := DecodeInPlace(data, l)
			if e, ok := errors.AsType[*SyntaxError](err); ok && e.Code == CodeValues {
				return refuse(data, fault) // this error is at a later offset
			}
			return v, err
		}
	}
	return DecodeInPlace(data, l)
}

// outline decodes an object, but leaves the values of the members for which keep returns true raw. With Limits.UncountedNumbers, it does
// not count numbers in lists of the member free or, if free is empty, in any list. v is nil if the text is not an object or is rejected. If
// it is rejected, fault is the error.
func outline(data []byte, l Limits, free string, keep func(name string, value []byte) bool) (v map[string]any, fault *SyntaxError) {
	var few [8]outermost
	s := scanner{data: data, lim: l.orDefault(), why: CodeSyntax, keepsMembers: true, members: few[:0], free: free}
	if at(data, space(data, 0)) != '{' {
		return nil, nil
	}
	if !s.document() {
		return nil, &SyntaxError{Offset: int64(s.stop), Code: s.why, Message: map[Code]string{
			CodeValues: fmt.Sprintf("document has more than %d values", s.lim.Values), CodeDuplicate: "duplicate member name",
			CodeDepth: fmt.Sprintf("arrays and objects are nested more than %d levels deep", s.lim.Depth), CodeSyntax: "document is not valid JSON",
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
		panic("strictjson: scanner accepted an invalid text: " + err.Error())
	}
	return v
}
