package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

var buckets = []string{"hour", "day", "week", "month", "year"}

// billingQuery returns the parameters that all three billing queries share.
func (r *request) billingQuery() url.Values {
	query := url.Values{}
	if size := r.query.text("bucketSize", buckets...); size != "" {
		query.Set("bucketSize", size)
	}
	for _, name := range [...]string{"startTime", "endTime"} {
		text := r.query.text(name)
		if text == "" {
			continue
		}
		if _, err := time.Parse(time.DateOnly, text); err == nil {
			text += "T00:00:00Z"
		}
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
			r.query.fail("%s: expected an RFC 3339 time", name)
		}
		query.Set(name, text)
	}
	return query
}

// ledger adds amounts by bucket and group.
type ledger struct {
	field string // v1 field of the group, or empty
	sums  map[ledgerKey]*ledgerSum
}

type ledgerKey struct{ time, group string }

type ledgerSum struct{ total, premium big.Rat }

func newLedger(field string) *ledger {
	return &ledger{field: field, sums: make(map[ledgerKey]*ledgerSum)}
}

func (l *ledger) add(record any, group string) {
	key := ledgerKey{time: bucketTime(translate.Text(record, "startTime")), group: group}
	sum := l.sums[key]
	if sum == nil {
		sum = &ledgerSum{}
		l.sums[key] = sum
	}
	sum.total.Add(&sum.total, decimal(translate.At(record, "totalAmount")))
	sum.premium.Add(&sum.premium, decimal(translate.At(record, "highPerformanceAmount")))
}

// bucketTime returns the start of a bucket in UTC and whole seconds.
func bucketTime(s string) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return s
	}
	return t.UTC().Format(time.RFC3339)
}

// decimal parses an amount exactly as it was printed. It returns 0 for anything else.
func decimal(v any) *big.Rat {
	f, _ := translate.Number(v)
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64)) // f is finite
	return r
}

// keys returns the groups sorted by time and name.
func (l *ledger) keys() []ledgerKey {
	return slices.SortedFunc(maps.Keys(l.sums), func(a, b ledgerKey) int {
		return cmp.Or(strings.Compare(a.time, b.time), strings.Compare(a.group, b.group))
	})
}

// rounder rounds a series of amounts to millionths such that their sum is the rounded sum. Each amount includes the rounding remainder of
// the previous amounts.
type rounder struct{ exact, given big.Rat }

func (r *rounder) next(amount *big.Rat) json.Number {
	r.exact.Add(&r.exact, amount)
	rounded, _ := new(big.Rat).SetString(r.exact.FloatString(6)) // a decimal number
	step := new(big.Rat).Sub(rounded, &r.given)
	r.given.Set(rounded)
	text := step.FloatString(6)
	return json.Number(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// records returns the amounts in v1's form.
func (l *ledger) records(extra func(sum *ledgerSum, record map[string]any)) []any {
	var total rounder
	out := []any{}
	for _, key := range l.keys() {
		sum := l.sums[key]
		record := map[string]any{"time": key.time, "amount": total.next(&sum.total), "diskSpaceBilledGb": 0}
		if l.field != "" {
			record[l.field] = key.group
		}
		extra(sum, record)
		out = append(out, record)
	}
	return out
}

func podBilling(ctx context.Context, r *request) (*reply, error) {
	query := r.billingQuery()
	grouping := r.query.text("grouping", "podId", "gpuTypeId", "gpuId")
	podID, typeID := r.query.text("podId"), r.query.text("gpuTypeId")
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	if podID != "" {
		query.Set("podId", podID)
	}
	records, err := r.List(ctx, legacy.Purpose{Verb: "pod billing", Noun: legacy.NounPod}, "listPodBilling", "records", query)
	if err != nil {
		return nil, err
	}
	r.warnDurations()
	field, typeOf := "podId", func(string) string { return "" }
	if grouping != "podId" || typeID != "" {
		typeOf = r.PodGPUTypes(ctx, records)
	}
	if grouping != "podId" {
		field = "gpuTypeId"
	}
	sums := newLedger(field)
	for _, record := range records {
		id := translate.Text(record, "podId")
		kind := typeOf(id)
		if typeID != "" && kind != typeID || podID != "" && id != podID {
			continue
		}
		if field == "podId" {
			kind = id
		}
		sums.add(record, kind)
	}
	return ok(sums.records(func(_ *ledgerSum, record map[string]any) {
		record["timeBilledMs"] = 0
		if podID != "" {
			record["podId"] = podID
		}
	})), nil
}

func (r *request) warnDurations() {
	r.WarnLost("timeBilledMs", "always 0 because the platform reports only amounts")
	r.WarnLost("diskSpaceBilledGb", "always 0 because the platform reports only amounts")
}

func networkVolumeBilling(ctx context.Context, r *request) (*reply, error) {
	query := r.billingQuery()
	if r.query.fault != nil {
		return nil, r.query.fault
	}
	records, err := r.List(ctx, legacy.Purpose{Verb: "network volume billing", Noun: legacy.NounVolume},
		"listNetworkVolumeBilling", "records", query)
	if err != nil {
		return nil, err
	}
	r.WarnLost("diskSpaceBilledGb", "always 0 because the platform reports only amounts")
	sums := newLedger("")
	for _, record := range records {
		sums.add(record, "")
	}
	var premium rounder
	return ok(sums.records(func(sum *ledgerSum, record map[string]any) {
		record["highPerformanceStorageAmount"] = premium.next(&sum.premium)
		record["highPerformanceStorageDiskSpaceBilledGb"] = 0
	})), nil
}
