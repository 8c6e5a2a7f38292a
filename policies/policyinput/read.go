package policyinput

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Recorded is an input read back from its document, as a decision log holds it.
type Recorded struct {
	// Input is the input. Hidden places in it hold stand-ins.
	Input *Input
	// Hidden lists the places of the document that are not known, as pointers
	// below it (/request/body/env/TOKEN): masked, erased or never recorded. The
	// price list never is: a document only names it.
	Hidden []string
}

// ParseRecorded is the inverse of [Input.Decoded]: doc is a document as decoded JSON,
// numbers as json.Number. masked lists the pointers below doc of values that
// were replaced or removed; a missing section counts as one.
func ParseRecorded(doc map[string]any, masked []string) (*Recorded, error) {
	given, there := doc["version"]
	if !there {
		return nil, fmt.Errorf("%w: no version: add \"version\": %d", ErrInput, version)
	}
	if v, _ := given.(json.Number); v.String() != strconv.Itoa(version) {
		text, _ := json.Marshal(given) // as it was decoded from
		return nil, fmt.Errorf("%w: version %s is not supported: want the number %d", ErrInput, text, version)
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

// reader reads documents and keeps the first fault. A hidden value reads as the zero
// value, unless the stand-in has the right type.
type reader struct {
	hidden   hiddenPaths
	pointers []string
	err      error
}

func (r *reader) hide(pointer string) {
	path, err := SplitPointer(pointer)
	if err != nil && pointer != "" {
		r.err = fmt.Errorf("%w: %s: is no pointer to something hidden", ErrInput, pointer)
		return
	}
	r.hidden = append(r.hidden, path)
	r.pointers = append(r.pointers, pointer)
}

// fault notes a fault, unless the place, or all around it, is hidden.
func (r *reader) fault(at, message string) {
	path, err := SplitPointer(at)
	if err == nil && slices.ContainsFunc(r.hidden, func(h []string) bool { return len(h) <= len(path) && slices.Equal(h, path[:len(h)]) }) {
		return
	}
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s: %s", ErrInput, at, message)
	}
}

// members reads an object into the value that its shape describes.
func (r *reader) members(s *shape, of any, at string, given object) {
	for _, m := range s.members {
		if v, there := given[m.name]; there && m.read != nil {
			m.read(r, of, at+"/"+m.name, v)
		}
	}
}

// typed reads a value of a type; null is its zero value.
func typed[T any](r *reader, at string, given any) T {
	t, ok := given.(T)
	if !ok && given != nil {
		r.fault(at, fmt.Sprintf("is %T, not %T", given, t))
	}
	return t
}

func (r *reader) whole(at string, given any) int64 {
	text := typed[json.Number](r, at, given)
	if text == "" {
		return 0
	}
	n, err := text.Int64()
	if err != nil {
		r.fault(at, err.Error())
	}
	return n
}

func (r *reader) money(at string, given any) Money {
	text := typed[json.Number](r, at, given)
	if text == "" {
		return 0
	}
	m, err := catalog.ParseMoney(text.String())
	if err != nil {
		r.fault(at, err.Error())
	}
	return m
}

func (r *reader) strings(at string, given any) []string {
	var out []string
	for i, item := range typed[[]any](r, at, given) {
		out = append(out, typed[string](r, fmt.Sprintf("%s/%d", at, i), item))
	}
	return out
}

// catalog stands in for the price list: a document only names it.
func (r *reader) catalog(at string, given any) *catalog.Snapshot {
	if !typed[bool](r, at+"/known", typed[object](r, at, given)["known"]) {
		return nil
	}
	for _, list := range []string{"cpus", "gpus", "pools"} {
		r.hide(at + "/" + list)
	}
	return catalog.NewSnapshot(catalog.Lists{}, catalog.Rates{}, time.Time{})
}

// hiddenPaths are the places of a document that are not known.
type hiddenPaths [][]string

// touched lists those that a look at path sees: the values above, at or below it.
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
