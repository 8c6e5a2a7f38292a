package policyinput

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Recorded is an input that was read from a decision log.
type Recorded struct {
	// Input is the recorded input. Hidden values in it are replaced by placeholders.
	Input *Input
	// Hidden lists the pointers of unknown values in the document (/request/body/env/TOKEN): masked, erased or never recorded. It does not
	// include the price list, because documents only contain its digest.
	Hidden []string
}

// ParseRecorded is the inverse of [Input.Decoded]. doc is a document as decoded JSON with numbers as json.Number. masked lists the
// pointers of values in doc that were replaced or removed; a missing section counts as masked.
func ParseRecorded(doc map[string]any, masked []string) (*Recorded, error) {
	given, there := doc["version"]
	if !there {
		return nil, fmt.Errorf("%w: version is missing: add \"version\": %d", ErrInput, version)
	}
	if v, _ := given.(json.Number); v.String() != strconv.Itoa(version) {
		text, _ := json.Marshal(given) // it was decoded from JSON
		return nil, fmt.Errorf("%w: version must be the number %d, got %s", ErrInput, version, text)
	}
	r := &reader{}
	for _, p := range masked {
		r.hide(p)
	}
	for _, section := range documentShape.members {
		if _, there := doc[section.name]; !there {
			r.hide("/" + section.name)
		}
	}
	in := &Input{}
	d := &Document{in: in}
	r.members(documentShape, d, "", doc)
	if d.hidden(r.hidden) {
		r.hide("/request/runs")
	}
	if len(r.hidden.touched([]string{"resource", "after"})) > 0 {
		r.hide("/resource/secrets")
	}
	if r.err != nil {
		return nil, r.err
	}
	slices.Sort(r.pointers)
	return &Recorded{Input: in, Hidden: slices.Compact(r.pointers)}, nil
}

// reader reads documents and keeps the first error. A hidden value is read as the zero value unless its placeholder has the right
// type.
type reader struct {
	hidden   hiddenPaths
	pointers []string
	err      error
}

func (r *reader) hide(pointer string) {
	path, err := SplitPointer(pointer)
	if err != nil && pointer != "" {
		r.err = fmt.Errorf("%w: pointer %q to a masked value is malformed", ErrInput, pointer)
		return
	}
	r.hidden = append(r.hidden, path)
	r.pointers = append(r.pointers, pointer)
}

// fault records an error unless the place or a place above it is hidden.
func (r *reader) fault(at, message string) {
	path, err := SplitPointer(at)
	if err == nil && slices.ContainsFunc(r.hidden, func(h []string) bool { return len(h) <= len(path) && slices.Equal(h, path[:len(h)]) }) {
		return
	}
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s: %s", ErrInput, at, message)
	}
}

// members reads an object into the Go value that its shape describes.
func (r *reader) members(s *shape, of any, at string, given object) {
	for _, m := range s.members {
		if v, there := given[m.name]; there && m.read != nil {
			m.read(r, of, at+"/"+m.name, v)
		}
	}
}

// typed reads a value of type T; null is the zero value.
func typed[T any](r *reader, at string, given any) T {
	t, ok := given.(T)
	if !ok && given != nil {
		r.fault(at, fmt.Sprintf("must be %T, got %T", t, given))
	}
	return t
}

// number parses a number; null is zero.
func number[T int64 | Money](r *reader, at string, given any, parse func(string) (T, error)) T {
	text := typed[json.Number](r, at, given)
	if text == "" {
		return 0
	}
	n, err := parse(text.String())
	if err != nil {
		r.fault(at, err.Error())
	}
	return n
}

func whole(text string) (int64, error) { return json.Number(text).Int64() }

// field sets the value at to a member.
func (r *reader) field(to any, at string, given any) {
	switch to := to.(type) {
	case *string:
		*to = typed[string](r, at, given)
	case *bool:
		*to = typed[bool](r, at, given)
	case *int64:
		*to = number(r, at, given, whole)
	case *Money:
		*to = number(r, at, given, catalog.ParseMoney)
	case **Money:
		if given != nil {
			*to = new(number(r, at, given, catalog.ParseMoney))
		}
	case *time.Time:
		*to = r.time(at, given)
	case *[]string:
		for i, item := range typed[[]any](r, at, given) {
			*to = append(*to, typed[string](r, fmt.Sprintf("%s/%d", at, i), item))
		}
	case *map[string]string:
		for name, v := range typed[object](r, at, given) {
			if *to == nil {
				*to = make(map[string]string)
			}
			(*to)[name] = typed[string](r, at+"/"+name, v)
		}
	case *map[string]any:
		*to = typed[object](r, at, given)
	case *any:
		*to = given
	}
}

func (r *reader) time(at string, given any) time.Time {
	text := typed[string](r, at, given)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		r.fault(at, "is not a time")
	}
	return t
}

// catalog returns a placeholder for the price list, because documents only contain its digest.
func (r *reader) catalog(at string, given any) *catalog.Snapshot {
	if !typed[bool](r, at+"/known", typed[object](r, at, given)["known"]) {
		return nil
	}
	for _, list := range []string{"cpus", "gpus", "pools"} {
		r.hide(at + "/" + list)
	}
	return catalog.NewSnapshot(catalog.Lists{}, catalog.Rates{}, time.Time{})
}

// hiddenPaths are the paths of unknown values in a document.
type hiddenPaths [][]string

// touched returns the hidden paths that a read of path includes: those above, at or below it.
func (h hiddenPaths) touched(path []string) []int {
	var out []int
	for i, p := range h {
		n := min(len(p), len(path))
		if slices.Equal(p[:n], path[:n]) {
			out = append(out, i)
		}
	}
	return out
}
