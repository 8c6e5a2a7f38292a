package policyinput

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Type tags of values in a key.
const (
	tagNull    = 'n'
	tagFalse   = 'f'
	tagTrue    = 't'
	tagNumber  = '#'
	tagString  = '"'
	tagArray   = '['
	tagObject  = '{'
	tagEnd     = '}'
	tagAbsent  = '-'
	tagCatalog = 'c'
)

// appendKey appends an encoding of the part of v that p reads. Different values have different encodings: every value starts with
// its type, strings and lists continue with their length, and objects end with a tag that no member starts with. Only keys of the
// same p are compared. Numbers keep their spelling, so 1 and 1.0 have different keys, which at worst causes a cache miss.
func appendKey(b []byte, v any, p *Projection) ([]byte, error) {
	switch x := v.(type) {
	case map[string]any:
		return appendMap(b, x, p)
	case map[string]string:
		return appendMap(b, x, p)
	case []any:
		b = binary.AppendUvarint(append(b, tagArray), uint64(len(x)))
		for _, item := range x {
			var err error
			if b, err = appendKey(b, item, everything); err != nil {
				return nil, err
			}
		}
		return b, nil
	case []string:
		b = binary.AppendUvarint(append(b, tagArray), uint64(len(x)))
		for _, item := range x {
			b = appendText(b, tagString, item)
		}
		return b, nil
	case *catalog.Snapshot:
		return appendText(b, tagCatalog, x.Digest()), nil
	case operation.Deferred:
		return appendKey(b, x.Decoded(), p)
	default:
		return appendScalar(b, v)
	}
}

func appendPart(b []byte, n part, p *Projection) ([]byte, error) {
	b = append(b, tagObject)
	for _, name := range p.namesIn(n.shape) {
		m, v := n.byName[name], any(absent)
		if m != nil {
			v = m.value(n.of)
		}
		if v == absent {
			b = append(b, tagAbsent)
			continue
		}
		var err error
		if m.whole {
			b, err = appendPart(b, part{m.inner, v}, p.member(name))
		} else {
			b, err = appendKey(b, v, p.member(name))
		}
		if err != nil {
			return nil, err
		}
	}
	return append(b, tagEnd), nil
}

// appendMap appends member names only if all members are read; otherwise the names are implied by p.
func appendMap[V any](b []byte, m map[string]V, p *Projection) (_ []byte, err error) {
	b = append(b, tagObject)
	if !p.whole {
		for _, name := range p.order {
			if v, present := m[name]; !present {
				b = append(b, tagAbsent)
			} else if b, err = appendKey(b, v, p.members[name]); err != nil {
				return nil, err
			}
		}
		return append(b, tagEnd), nil
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if b, err = appendKey(appendText(b, tagString, name), m[name], p); err != nil {
			return nil, err
		}
	}
	return append(b, tagEnd), nil
}

func appendScalar(b []byte, v any) ([]byte, error) {
	switch x := v.(type) {
	case nil:
		return append(b, tagNull), nil
	case bool:
		if x {
			return append(b, tagTrue), nil
		}
		return append(b, tagFalse), nil
	case string:
		return appendText(b, tagString, x), nil
	case json.Number:
		return appendText(b, tagNumber, string(x)), nil
	case Money:
		return appendText(b, tagNumber, x.String()), nil
	case int:
		return appendText(b, tagNumber, strconv.Itoa(x)), nil
	case int64:
		return appendText(b, tagNumber, strconv.FormatInt(x, 10)), nil
	case error: // result of a Deferred
		return nil, x
	default:
		return nil, fmt.Errorf("%w for a key: %T", errValue, v)
	}
}

func appendText(b []byte, tag byte, s string) []byte {
	b = binary.AppendUvarint(append(b, tag), uint64(len(s)))
	return append(b, s...)
}
