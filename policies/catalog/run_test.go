package catalog_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

const usd = catalog.Money(1_000_000)

// deferred is a value that is decoded when it is read.
type deferred struct{ v any }

func (d deferred) Decoded() any { return d.v }

func TestMostOfARun(t *testing.T) {
	second := catalog.RunPrice{PerSecond: usd / 10, DefaultSeconds: 5}
	hour := catalog.RunPrice{PerHour: 36 * usd / 10}
	tokens := catalog.RunPrice{PerTokens: 100 * usd, PerInput: 10 * usd, DefaultTokens: 1000}
	for _, tt := range []struct {
		name  string
		price catalog.RunPrice
		body  string
		most  catalog.Money // without that of the prompt
		known bool
	}{
		{"by run", catalog.RunPrice{PerRun: 5}, `{}`, 5, true},
		{"no length", second, `{"input":{}}`, usd / 2, true},
		{"no length, no default", catalog.RunPrice{PerSecond: 1}, `{"input":{}}`, 0, false},
		{"a length", second, `{"input":{"duration":2.5}}`, usd / 4, true},
		{"the smallest length", second, `{"input":{"duration":1e-9}}`, 1, true},
		{"a length of nothing", second, `{"input":{"duration":0}}`, 0, false},
		{"a negative length", second, `{"input":{"duration":-1}}`, 0, false},
		{"a length in words", second, `{"input":{"duration":"5"}}`, 0, false},
		{"an absurd length", second, `{"input":{"duration":1e12}}`, 0, false},
		{"a long length", second, `{"input":{"duration":1e9}}`, usd * 1e8, true},
		{"the platform's time", hour, `{}`, 6 * usd / 10, true},
		{"the price's time", catalog.RunPrice{PerHour: 36 * usd / 10, DefaultSeconds: 60}, `{"policy":{}}`, 6 * usd / 100, true},
		{"the job's time", hour, `{"policy":{"executionTimeout":7200000}}`, 72 * usd / 10, true},
		{"a time in words", hour, `{"policy":{"executionTimeout":"1"}}`, 0, false},
		{"no tokens", tokens, `{"model":"m"}`, usd / 10, true},
		{"no tokens, no default", catalog.RunPrice{PerTokens: 1}, `{}`, 0, false},
		{"tokens", tokens, `{"max_tokens":10,"n":3}`, 3000, true},
		{"either name", tokens, `{"max_tokens":1,"max_completion_tokens":20}`, 2000, true},
		{"of a job", tokens, `{"input":{"sampling_params":{"max_tokens":30,"best_of":2}}}`, 6000, true},
		{"of a chat in a job", tokens, `{"input":{"openai_input":{"max_tokens":40}}}`, 4000, true},
		{"null is nothing", tokens, `{"max_tokens":null}`, usd / 10, true},
		{"tokens in words", tokens, `{"max_tokens":"10"}`, 0, false},
		{"a fraction of a choice", tokens, `{"n":1.5}`, 0, false},
		{"more than any model has", tokens, `{"max_tokens":99999999999}`, 0, false},
		{"no price", catalog.RunPrice{}, `{}`, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body, _ := decode(t, tt.body).(map[string]any)
			for _, input := range []any{body["input"], deferred{body["input"]}} {
				body["input"] = input
				most, known := tt.price.MaxCost(body, 0)
				if known != tt.known || known && most != tt.most {
					t.Errorf("%T: Most = %s, %t, want %s, %t", input, most, known, tt.most, tt.known)
				}
			}
		})
	}
}

// The length of a job that is retried is unknown: only a price per run says what it costs.
func TestMostOfAnUnknownBody(t *testing.T) {
	for name, price := range map[string]catalog.RunPrice{
		"by hour": {PerHour: usd, DefaultSeconds: 5}, "by second": {PerSecond: usd, DefaultSeconds: 5}, "by token": {PerTokens: usd, DefaultTokens: 5},
	} {
		if most, known := price.MaxCost(nil, 0); known {
			t.Errorf("%s: MaxCost = %s, want unknown", name, most)
		}
	}
	if most, known := (catalog.RunPrice{PerRun: 5}).MaxCost(nil, 0); most != 5 || !known {
		t.Errorf("by run: MaxCost = %s, %t, want 0.000005, true", most, known)
	}
}

func TestWhatTokensAndTimeCost(t *testing.T) {
	one, apart := catalog.RunPrice{PerTokens: 10 * usd}, catalog.RunPrice{PerTokens: 10 * usd, PerInput: usd}
	hour := catalog.RunPrice{PerHour: usd}
	for name, tt := range map[string]struct{ got, want catalog.Money }{
		"one price":               {one.TokenCost(100, 10), 1100},
		"two prices":              {apart.TokenCost(100, 10), 200},
		"a cache":                 {catalog.RunPrice{PerTokens: 10 * usd, PerInput: usd, PerCached: usd / 10}.UsageCost(100, 60, 10), 146},
		"a cache, one price":      {catalog.RunPrice{PerTokens: 10 * usd, PerCached: usd}.UsageCost(100, 60, 10), 560},
		"a cache without a price": {apart.UsageCost(100, 60, 10), 200},
		"rounded up":              {catalog.RunPrice{PerTokens: 1}.TokenCost(1, 0), 1},
		"no more than is":         {one.TokenCost(math.MaxInt64, math.MaxInt64), 1_000_000_000 * usd},
		"half an hour":            {hour.TimeCost(30 * time.Minute), usd / 2},
		"a millisecond":           {hour.TimeCost(time.Millisecond), 1},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", name, tt.got, tt.want)
		}
	}
}

func TestRunPricesThatMakeNoSense(t *testing.T) {
	for want, r := range map[string]catalog.RunPrice{
		"exactly one":                                      {},
		"exactly one of":                                   {PerRun: 1, PerTokens: 1},
		"usd_per_million_input_tokens":                     {PerRun: 1, PerInput: 1},
		"usd_per_million_cached_tokens":                    {PerRun: 1, PerCached: 1},
		"must not exceed the price of other prompt tokens": {PerTokens: 10, PerInput: 2, PerCached: 3},
		"default_seconds":                                  {PerSecond: 1, DefaultSeconds: -1},
		"default_tokens":                                   {PerTokens: 1, DefaultTokens: -1},
	} {
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a fault of %s", r, err, want)
		}
	}
	if err := (catalog.RunPrice{PerTokens: 1, PerInput: 1, DefaultTokens: 1}).Validate(); err != nil {
		t.Errorf("a price by token: %v", err)
	}
}
