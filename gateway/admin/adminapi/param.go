package adminapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Types of parameters in addition to string, bool, int and lists of strings. Each parses its own text.
type (
	// Org is the ID of an organisation that the principal can access.
	Org string
	// Team is the ID of a team in the organisation named by the parameter org, or in any organisation.
	Team string
	// PastTeam is the ID of a team that may no longer be configured. The endpoint itself checks it.
	PastTeam string
	// Duration is a duration such as 90m or 7d.
	Duration time.Duration
	// Timestamp is an RFC 3339 time, or a date, which means the start of that day in UTC.
	Timestamp time.Time
	// Since is the start of a period that ends now. It is given as a Timestamp, or as a Duration before now.
	Since time.Time
	// Body is the request body. It is not a parameter.
	Body []byte
)

// OrgParam declares the required query parameter org, which selects one organisation. The parameter structs of endpoints embed OrgParam.
type OrgParam struct {
	Org Org `query:"org,required" doc:"id of an organisation"`
}

// OptionalOrg declares the query parameter org, which selects one organisation. Without it, the endpoint applies to all organisations that
// the principal may access. The parameter structs of endpoints embed OptionalOrg.
type OptionalOrg struct {
	Org Org `query:"org" doc:"only this organisation; default: all"`
}

// Param describes a parameter.
type Param struct {
	Name, Doc string
	Required  bool
	// Repeatable is set if the parameter may be given more than once.
	Repeatable bool
	// Default is the value if the parameter is absent. "" means the zero value.
	Default string
	// OneOf lists the allowed values, or is nil if any value is allowed.
	OneOf []string
	// Type is the type of one value.
	Type reflect.Type
	// Min and Max limit a number. Max limits the length of a string in bytes. 0 means no limit.
	Min, Max int

	index []int
}

// ParamsOf returns a Param for each field of the struct type t that has a query tag. The query tag contains the name of the parameter,
// optionally followed by ",required". The doc tag contains the description. The tags default, min and max set the [Param] fields with these
// names. The oneof tag lists the allowed values, separated by commas.
func ParamsOf(t reflect.Type) []Param {
	var out []Param
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("query")
		if !ok {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		p := Param{Name: name, Doc: f.Tag.Get("doc"), Required: option == "required", Default: f.Tag.Get("default"), Type: f.Type, index: f.Index}
		if f.Type.Kind() == reflect.Slice {
			p.Repeatable, p.Type = true, f.Type.Elem()
		}
		if list := f.Tag.Get("oneof"); list != "" {
			p.OneOf = strings.Split(list, ",")
		}
		p.Min, p.Max = number(f.Tag.Get("min")), number(f.Tag.Get("max"))
		if err := p.Check(p.Default); p.Default != "" && err != nil {
			panic("adminapi: the default of " + p.Name + ": " + err.Error())
		}
		out = append(out, p)
	}
	return out
}

func number(text string) int {
	n, _ := strconv.Atoi(cmp.Or(text, "0")) // tests detect malformed tags
	return n
}

// Check reports whether a value is well-formed. It does not look up names.
func (p *Param) Check(text string) error {
	_, err := p.parse(text, time.Time{})
	return err
}

// parse parses one value.
func (p *Param) parse(text string, now time.Time) (any, error) {
	switch p.Type {
	case reflect.TypeFor[Duration]():
		d, err := ParseDuration(text)
		if err != nil {
			return nil, errors.New("expected a duration such as 90m or 7d")
		}
		return Duration(d), nil
	case reflect.TypeFor[Timestamp]():
		at, err := ParseTime(text)
		if err != nil {
			return nil, errors.New("expected a date or an RFC 3339 time, e.g. 2026-11-01 or 2026-11-01T09:00:00Z")
		}
		return Timestamp(at), nil
	case reflect.TypeFor[Since]():
		if d, err := ParseDuration(text); err == nil && d >= 0 {
			return Since(now.Add(-d)), nil
		}
		at, err := ParseTime(text)
		if err != nil {
			return nil, errors.New("expected a duration before now such as 24h or 7d, or a time such as 2026-11-22T15:04:05Z")
		}
		return Since(at), nil
	}
	return p.plain(text)
}

// plain parses a string, a number or a bool.
func (p *Param) plain(text string) (any, error) {
	switch p.Type.Kind() { //nolint:exhaustive // no parameter is of another kind
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, errors.New("expected true or false")
		}
		return v, nil
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil || n < p.Min || p.Max > 0 && n > p.Max {
			return nil, fmt.Errorf("expected a number from %d to %d", p.Min, p.Max)
		}
		return n, nil
	}
	if p.OneOf != nil && !slices.Contains(p.OneOf, text) {
		return nil, errors.New("expected " + oneOf(p.OneOf))
	}
	if p.Max > 0 && len(text) > p.Max {
		return nil, fmt.Errorf("must have at most %d bytes", p.Max)
	}
	return reflect.ValueOf(text).Convert(p.Type).Interface(), nil
}

// oneOf joins choices for use in a sentence.
func oneOf(list []string) string {
	last := len(list) - 1
	return strings.TrimPrefix(strings.Join(list[:last], ", ")+" or "+list[last], " or ")
}

// ParseDuration parses a duration like time.ParseDuration, and also whole days such as 7d.
func ParseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err == nil && n >= -100_000 && n <= 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(text)
}

// Decimal parses an amount in a response; "" is 0.
func Decimal(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // amounts in responses are written by the gateway
	return n
}

// ParseTime parses an RFC 3339 time, or a date, which means 00:00 UTC.
func ParseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Parse(time.DateOnly, text)
}

// read returns the parameter struct. Empty values are treated as absent.
func (f *Handler) read(values url.Values, body []byte, s Principal) (reflect.Value, error) {
	in := reflect.New(f.in).Elem()
	faults := f.unknown(values)
	for i := range f.params {
		p := &f.params[i]
		texts := slices.DeleteFunc(slices.Clone(values[p.Name]), func(text string) bool { return text == "" })
		if len(texts) == 0 && p.Default != "" {
			texts = []string{p.Default}
		}
		switch {
		case len(texts) == 0 && p.Required:
			faults = append(faults, Fault{Parameter: p.Name, Detail: "is required: " + p.Doc})
			continue
		case len(texts) > 1 && !p.Repeatable:
			faults = append(faults, Fault{Parameter: p.Name, Detail: "must not be repeated"})
			continue
		}
		if fault := p.set(in.FieldByIndex(p.index), texts, values.Get("org"), s); fault.Detail != "" {
			faults = append(faults, fault)
		}
	}
	if len(faults) > 0 {
		return in, faults
	}
	for i := range in.NumField() {
		if in.Type().Field(i).Type == reflect.TypeFor[Body]() {
			in.Field(i).SetBytes(body)
		}
	}
	return in, nil
}

// set assigns values to a field and returns the first fault, or the zero Fault.
func (p *Param) set(field reflect.Value, texts []string, org string, s Principal) Fault {
	for _, text := range texts {
		v, err := p.parse(text, s.Now)
		if err != nil {
			return Fault{Parameter: p.Name, Detail: strconv.Quote(text) + ": " + err.Error()}
		}
		missing := ""
		switch v.(type) {
		case Org:
			missing = s.OrgProblem(text)
		case Team:
			if org == "" || s.OrgProblem(org) == "" {
				missing = s.TeamProblem(org, text)
			}
		}
		if missing != "" {
			return Fault{Parameter: p.Name, Detail: missing, Missing: true}
		}
		if p.Repeatable {
			field.Set(reflect.Append(field, reflect.ValueOf(v)))
		} else {
			field.Set(reflect.ValueOf(v))
		}
	}
	return Fault{}
}

// unknown returns a fault for each unknown parameter.
func (f *Handler) unknown(values url.Values) (faults FaultsError) {
	names := make([]string, len(f.params))
	for i, p := range f.params {
		names[i] = p.Name
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if reason := UnknownName("parameter", name, names); reason != "" {
			faults = append(faults, Fault{Parameter: name, Detail: reason})
		}
	}
	return faults
}
