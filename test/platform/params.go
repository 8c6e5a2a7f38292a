package platform

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// params reads query parameters, gathering what is malformed as a 422.
type params struct {
	checker
	q url.Values
}

func (p *params) has(name string) bool { return p.q.Has(name) }

// list reads a comma-separated parameter; item says what is wrong with an entry.
func (p *params) list(name string, item func(string) string) []string {
	if !p.has(name) {
		return nil
	}
	entries := strings.Split(p.q.Get(name), ",")
	for _, e := range entries {
		if fault := item(e); fault != "" {
			p.add("query."+name, "%s", fault)
		}
	}
	return entries
}

// oneOf makes an item check for list out of the values there are.
func oneOf(values ...string) func(string) string {
	return func(s string) string {
		if slices.Contains(values, s) {
			return ""
		}
		return "must be one of " + strings.Join(values, ", ") + ", but got '" + s + "'"
	}
}

// enum reads one of values; the first of them when the parameter is left out.
func (p *params) enum(name string, values ...string) string {
	if !p.has(name) {
		return values[0]
	}
	v := p.q.Get(name)
	if fault := oneOf(values...)(v); fault != "" {
		p.add("query."+name, "%s", fault)
	}
	return v
}

func (p *params) integer(name string, low, high, otherwise int) int {
	if !p.has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(p.q.Get(name))
	if err != nil || n < low || n > high {
		p.add("query."+name, "must be an integer from %d to %d, but got '%s'", low, high, p.q.Get(name))
		return otherwise
	}
	return n
}

// flag reads a boolean as [strconv.ParseBool] does; nil when the parameter is left out.
func (p *params) flag(name string) *bool {
	if !p.has(name) {
		return nil
	}
	set, err := strconv.ParseBool(p.q.Get(name))
	if err != nil {
		p.add("query."+name, "must be true or false, but got '%s'", p.q.Get(name))
		return nil
	}
	return &set
}

// moment reads an RFC 3339 time; the zero time when the parameter is left out.
func (p *params) moment(name string) time.Time {
	if !p.has(name) {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, p.q.Get(name))
	if err != nil {
		p.add("query."+name, "must be an RFC 3339 date-time, but got '%s'", p.q.Get(name))
	}
	return t.UTC()
}
