package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// CostQuery asks what resources have cost. Times are whole hours, the zero Time is the
// default; By names dimensions, and Where keeps what has one of the values in each.
type CostQuery struct {
	From, To time.Time
	Bucket   string
	By       []string
	Where    map[string][]string
	// Rates tells what was counted at different rates apart.
	Rates bool
}

// byLabel begins the dimensions that are labels.
const byLabel = "label:"

// Dimensions are what costs can be grouped and filtered by, besides labels.
var dimensions = []string{"team", "key", "kind", "resource", "gpu", "dc"} //nolint:gochecknoglobals // read only

// Costs is what resources have cost in a range of time, by bucket and group.
type Costs struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Rows  []Cost    `json:"rows"`
	Total string    `json:"total"`
}

// Cost is one bucket of one group, in USD. Of its members only those are set that the
// costs are grouped by; with the resource come its name, machine, place and the
// decision on the call that made it.
type Cost struct {
	Start      time.Time `json:"start"`
	End        time.Time `json:"end"`
	Team       string    `json:"team,omitempty"`
	Key        string    `json:"key,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Resource   string    `json:"resource,omitempty"`
	Name       string    `json:"name,omitempty"`
	GPU        string    `json:"gpu,omitempty"`
	DataCenter string    `json:"dc,omitempty"`
	Decision   string    `json:"decision,omitempty"`
	// Labels are those that the costs are grouped by, and with the resource all.
	Labels map[string]string `json:"labels,omitempty"`
	USD    string            `json:"usd"`
	// PerHour is the rate, in USD, and Hours for how long, where rates are told apart and
	// this one is known; corrections by bills and what costs once have none.
	PerHour string `json:"perHour,omitempty"`
	Hours   string `json:"hours,omitempty"`
	// ListPerHour is the rate on the platform's list, and ListUSD the costs at it, where
	// something else was agreed.
	ListPerHour string `json:"listPerHour,omitempty"`
	ListUSD     string `json:"listUsd,omitempty"`
	// GB is the size of a network volume.
	GB int64 `json:"gb,omitempty"`
}

// Forecasts is what an organisation's scopes are likely to spend.
type Forecasts struct {
	At     time.Time  `json:"at"`
	Scopes []Forecast `json:"scopes"`
}

// Forecast is that of one scope, in USD: what has accrued today and this month, and
// what both come to.
type Forecast struct {
	Scope     string   `json:"scope"`
	PerHour   string   `json:"perHour"`
	Today     string   `json:"today"`
	Day       Estimate `json:"day"`
	ThisMonth string   `json:"thisMonth"`
	Month     Estimate `json:"month"`
	// Days is how many whole days of history it is made from.
	Days int `json:"days"`
	// Budgets are those of a day or month.
	Budgets []Budget `json:"budgets"`
}

// Estimate is one in USD, with the range that days have differed in.
type Estimate struct {
	Low      string `json:"low"`
	Expected string `json:"expected"`
	High     string `json:"high"`
}

// queryOf reads a query.
func queryOf(v url.Values) (CostQuery, error) {
	q := CostQuery{Bucket: v.Get("bucket"), By: v["by"], Where: make(map[string][]string)}
	for name, at := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		text := v.Get(name)
		if text == "" {
			continue
		}
		var err error
		if *at, err = time.Parse(time.RFC3339, text); err != nil {
			if *at, err = time.Parse(time.DateOnly, text); err != nil {
				return q, BadRequestError{Reason: fmt.Sprintf("%s=%s: expected a date or an RFC 3339 time, e.g. 2026-11-01 or 2026-11-01T09:00:00Z", name, text)}
			}
		}
	}
	for _, d := range dimensions {
		if values, ok := v[d]; ok {
			q.Where[d] = values
		}
	}
	for _, label := range v["label"] {
		name, value, ok := strings.Cut(label, "=")
		if !ok || name == "" {
			return q, BadRequestError{Reason: fmt.Sprintf("label=%s: expected name=value, and name= for what has none", label)}
		}
		q.Where[byLabel+name] = append(q.Where[byLabel+name], value)
	}
	return q, nil
}

func (d Deps) ask(ctx context.Context, v url.Values, change func(q *CostQuery)) (*Costs, error) {
	q, err := queryOf(v)
	if err != nil {
		return nil, err
	}
	change(&q)
	return d.Spend.History(ctx, v.Get("org"), q)
}

func (d Deps) costs(r *http.Request) (any, error) {
	return d.ask(r.Context(), r.URL.Query(), func(*CostQuery) {})
}

func (d Deps) forecast(r *http.Request) (any, error) {
	v := r.URL.Query()
	forecasts, err := d.Spend.Forecast(r.Context(), v.Get("org"))
	if err != nil {
		return nil, err
	}
	if asked := scopesIn(v); len(asked) > 0 {
		forecasts.Scopes = slices.DeleteFunc(forecasts.Scopes, func(f Forecast) bool { return !slices.Contains(asked, f.Scope) })
	}
	return forecasts, nil
}

// scopesIn are the teams and keys that a query names.
func scopesIn(v url.Values) (scopes []string) {
	for _, kind := range []string{"team", "key"} {
		for _, id := range v[kind] {
			scopes = append(scopes, kind+" "+id)
		}
	}
	return scopes
}

// export answers with costs in the columns of FOCUS 1.2.
func (d Deps) export(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	costs, err := d.ask(r.Context(), v, func(q *CostQuery) { q.By, q.Rates = dimensions, true })
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	_ = WriteFOCUS(w, v.Get("org"), costs.Rows) // the reader left
}
