package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// ReadInput is the inverse of [Input.Document]: doc is a document as decoded
// JSON, numbers as json.Number. masked lists the pointers below doc of values
// that were replaced or removed; so does a missing section count.
func ReadInput(doc map[string]any, masked []string) (*Recorded, error) {
	if v, _ := doc["version"].(json.Number); v.String() != strconv.Itoa(inputVersion) {
		return nil, fmt.Errorf("%w: a document of version %v, not %d", ErrInput, doc["version"], inputVersion)
	}
	r := recordReader{}
	for _, p := range masked {
		r.hide(p)
	}
	for _, section := range []string{"caller", "catalog", "cost", "request", "resource", "spend", "time"} {
		if _, there := doc[section]; !there {
			r.hide("/" + section)
		}
	}
	in := &Input{
		Request:  r.request(r.object(doc, "", "request")),
		Caller:   r.caller(r.object(doc, "", "caller")),
		Resource: r.resource(r.object(doc, "", "resource")),
		Catalog:  r.catalog(r.object(doc, "", "catalog")),
		Cost:     r.cost(r.object(doc, "", "cost")),
		Spend:    r.spend(r.object(doc, "", "spend")),
		Time:     r.time(r.object(doc, "", "time")),
	}
	if r.err != nil {
		return nil, r.err
	}
	slices.Sort(r.pointers)
	return &Recorded{Input: in, Hidden: slices.Compact(r.pointers)}, nil
}

// recordReader reads the typed parts of a document and keeps the first fault.
// What is hidden reads as the zero value, whatever stands there.
type recordReader struct {
	hidden   hiddenPaths
	pointers []string
	err      error
}

func (r *recordReader) hide(pointer string) {
	path, err := splitPointer(pointer)
	if err != nil && pointer != "" {
		r.fault(pointer, "is no pointer to something hidden")
		return
	}
	r.hidden = append(r.hidden, path)
	r.pointers = append(r.pointers, pointer)
}

func (r *recordReader) fault(at, message string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s: %s", ErrInput, at, message)
	}
}

// covered tells whether a place, or all around it, is hidden.
func (r *recordReader) covered(at string) bool {
	path, err := splitPointer(at)
	return err == nil && slices.ContainsFunc(r.hidden, func(h []string) bool {
		return len(h) <= len(path) && slices.Equal(h, path[:len(h)])
	})
}

// member reads a typed member; a missing, null or hidden one is the zero value.
func member[T any](r *recordReader, o map[string]any, at, name string) T {
	var zero T
	v, there := o[name]
	if !there || v == nil {
		return zero
	}
	if t, ok := v.(T); ok {
		return t
	}
	if !r.covered(at + "/" + name) {
		r.fault(at+"/"+name, fmt.Sprintf("is %T, not %T", v, zero))
	}
	return zero
}

func (r *recordReader) object(o map[string]any, at, name string) map[string]any {
	return member[map[string]any](r, o, at, name)
}

func (r *recordReader) integer(o map[string]any, at, name string) int64 {
	text := member[json.Number](r, o, at, name)
	if text == "" {
		return 0
	}
	n, err := text.Int64()
	if err != nil {
		r.fault(at+"/"+name, err.Error())
	}
	return n
}

func (r *recordReader) money(o map[string]any, at, name string) Money {
	text := member[json.Number](r, o, at, name)
	if text == "" {
		return 0
	}
	m, err := catalog.ParseMoney(text.String())
	if err != nil {
		r.fault(at+"/"+name, err.Error())
	}
	return m
}

func (r *recordReader) request(o map[string]any) Request {
	const at = "/request"
	out := Request{
		Operation: member[string](r, o, at, "operation"), Method: member[string](r, o, at, "method"), Path: member[string](r, o, at, "path"),
		Query: r.object(o, at, "query"), Body: o["body"], Dialect: member[string](r, o, at, "dialect"),
	}
	params := r.object(o, at, "params")
	for name := range params {
		if out.Params == nil {
			out.Params = make(map[string]string, len(params))
		}
		out.Params[name] = member[string](r, params, at+"/params", name)
	}
	return out
}

func (r *recordReader) caller(o map[string]any) Caller {
	const at = "/caller"
	out := Caller{Org: member[string](r, o, at, "org"), Team: member[string](r, o, at, "team"), Key: member[string](r, o, at, "key")}
	for i, role := range member[[]any](r, o, at, "roles") {
		s, ok := role.(string)
		if !ok {
			r.fault(fmt.Sprintf("%s/roles/%d", at, i), "is not a string")
		}
		out.Roles = append(out.Roles, s)
	}
	return out
}

func (r *recordReader) resource(o map[string]any) Resource {
	const at = "/resource"
	out := Resource{Current: o["current"], After: o["after"]}
	if _, there := o["template"]; there {
		t := r.object(o, at, "template")
		out.Template = &Template{
			ID:  member[string](r, t, at+"/template", "id"),
			Own: member[bool](r, t, at+"/template", "own"), Public: member[bool](r, t, at+"/template", "public"),
			Record: t["record"],
		}
	}
	return out
}

// catalog stands in for the price list: a document only names it.
func (r *recordReader) catalog(o map[string]any) *catalog.Snapshot {
	if !member[bool](r, o, "/catalog", "known") {
		return nil
	}
	for _, list := range []string{"cpus", "gpus", "pools"} {
		r.hide("/catalog/" + list)
	}
	return catalog.NewSnapshot(nil, nil, catalog.Rates{}, time.Time{})
}

func (r *recordReader) cost(o map[string]any) Cost {
	const at = "/cost"
	out := Cost{
		Known: member[bool](r, o, at, "known"), Hourly: r.money(o, at, "usd_per_hour"), PerGPU: r.money(o, at, "usd_per_gpu_hour"),
		GPUs: r.integer(o, at, "gpus"), Basis: member[string](r, o, at, "basis"), Reason: member[string](r, o, at, "reason"),
	}
	if text := member[string](r, o, at, "as_of"); text != "" && !r.covered(at+"/as_of") {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			r.fault(at+"/as_of", "is not a time")
		}
		out.AsOf = t
	}
	return out
}

func (r *recordReader) spend(o map[string]any) Spend {
	const at = "/spend"
	return Spend{
		Known: member[bool](r, o, at, "known"),
		Org:   r.account(o, at, "org"), Team: r.account(o, at, "team"), Key: r.account(o, at, "key"),
	}
}

func (r *recordReader) account(spend map[string]any, above, name string) Account {
	o, at := r.object(spend, above, name), above+"/"+name
	limit := func(name string) *Money {
		if o[name] == nil {
			return nil
		}
		m := r.money(o, at, name)
		return &m
	}
	return Account{
		Burn: r.money(o, at, "burn"), Day: r.money(o, at, "day"), Month: r.money(o, at, "month"),
		BurnLimit: limit("burn_limit"), DayLimit: limit("day_limit"), MonthLimit: limit("month_limit"),
		GPUs: r.integer(o, at, "gpus"), Pods: r.integer(o, at, "pods"), Workers: r.integer(o, at, "workers"),
	}
}

func (r *recordReader) time(o map[string]any) time.Time {
	ns := r.integer(o, "/time", "ns")
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// hiddenPaths are the places of a document that are not known.
type hiddenPaths [][]string

// touched lists those that a look at path sees: what is above, at or below it.
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

// joinPointer is the pointer to a path.
func joinPointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"))
	}
	return b.String()
}
