package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// byOwner reports whether the grouping is one that the ledger knows: by team or by a
// label.
func (b *billing) byOwner() bool {
	label, ok := strings.CutPrefix(b.grouping, "label:")
	return b.resource != "" && (b.grouping == "team" || ok && label != "")
}

// group is that of a row of the ledger's history.
func (b *billing) group(c *admin.Cost) string {
	if label, ok := strings.CutPrefix(b.grouping, "label:"); ok {
		return c.Labels[label]
	}
	return c.Team
}

// allot groups records of resources by what the ledger says of these: an amount is
// divided as the ledger's costs of the resource are in the bucket, or, if there are
// none, in the whole range. What the ledger does not know has the group "".
func (b *billing) allot(ctx context.Context, records []map[string]any) ([]map[string]any, error) {
	rows, err := b.history(ctx, records)
	if err != nil {
		return nil, err
	}
	type bucket struct{ time, group string }
	sums := make(map[bucket]*big.Rat)
	for _, record := range records {
		text := func(name string) string { s, _ := record[name].(string); return s }
		amount, ok := new(big.Rat).SetString(fmt.Sprint(record["amount"]))
		at, err := time.Parse(time.RFC3339, text("time"))
		if !ok || err != nil {
			return nil, fmt.Errorf("the gateway answered a record without a time and an amount: %v", record)
		}
		for group, share := range b.shares(rows[text(b.resource)], at) {
			key := bucket{text("time"), group}
			if sums[key] == nil {
				sums[key] = new(big.Rat)
			}
			sums[key].Add(sums[key], new(big.Rat).Mul(amount, share))
		}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(x, y bucket) int { return cmp.Or(cmp.Compare(x.time, y.time), cmp.Compare(x.group, y.group)) })
	out := make([]map[string]any, len(keys))
	for i, key := range keys {
		out[i] = map[string]any{"time": key.time, b.grouping: key.group, "amount": json.Number(sums[key].FloatString(9))}
	}
	return out, nil
}

// history returns what the resources of some records have cost by the ledger, by
// resource.
func (b *billing) history(ctx context.Context, records []map[string]any) (map[string][]admin.Cost, error) {
	if len(records) == 0 {
		return nil, nil
	}
	unit, length := "day", 24*time.Hour
	if b.bucket == "hour" {
		unit, length = "hour", time.Hour
	}
	first, last := "", ""
	for _, record := range records {
		at, _ := record["time"].(string)
		if first == "" || at < first {
			first = at
		}
		last = max(last, at)
	}
	from, err := time.Parse(time.RFC3339, first)
	if err != nil {
		return nil, fmt.Errorf("the gateway answered a record without a time: %w", err)
	}
	to, err := time.Parse(time.RFC3339, last)
	if err != nil {
		return nil, fmt.Errorf("the gateway answered a record without a time: %w", err)
	}
	q := url.Values{
		"org": {b.org}, "by": {"resource", b.grouping}, "bucket": {unit},
		"from": {from.UTC().Truncate(length).Format(time.RFC3339)}, "to": {b.end(to).Format(time.RFC3339)},
	}
	var costs admin.Costs
	if err := b.admin.do(ctx, http.MethodGet, "/admin/spend/history?"+q.Encode(), &costs); err != nil {
		return nil, err
	}
	rows := make(map[string][]admin.Cost)
	for _, c := range costs.Rows {
		rows[c.Resource] = append(rows[c.Resource], c)
	}
	return rows, nil
}

// end is when the bucket that began at a time ends.
func (b *billing) end(start time.Time) time.Time {
	start = start.UTC()
	switch b.bucket {
	case "hour":
		return start.Add(time.Hour)
	case "week":
		return start.AddDate(0, 0, 7)
	case "month":
		return start.AddDate(0, 1, 0)
	case "year":
		return start.AddDate(1, 0, 0)
	}
	return start.AddDate(0, 0, 1)
}

// shares is what part of a resource's costs in the bucket that began at a time each
// group has; together they are 1.
func (b *billing) shares(rows []admin.Cost, at time.Time) map[string]*big.Rat {
	sum := func(in func(c *admin.Cost) bool) (map[string]*big.Rat, *big.Rat) {
		parts, total := make(map[string]*big.Rat), new(big.Rat)
		for i := range rows {
			usd, ok := new(big.Rat).SetString(rows[i].USD)
			if !ok || !in(&rows[i]) {
				continue
			}
			group := b.group(&rows[i])
			if parts[group] == nil {
				parts[group] = new(big.Rat)
			}
			parts[group].Add(parts[group], usd)
			total.Add(total, usd)
		}
		return parts, total
	}
	end := b.end(at)
	parts, total := sum(func(c *admin.Cost) bool { return !c.Start.Before(at) && c.Start.Before(end) })
	if total.Sign() == 0 {
		parts, total = sum(func(*admin.Cost) bool { return true })
	}
	if total.Sign() == 0 {
		return map[string]*big.Rat{"": big.NewRat(1, 1)}
	}
	for _, part := range parts {
		part.Quo(part, total)
	}
	return parts
}
