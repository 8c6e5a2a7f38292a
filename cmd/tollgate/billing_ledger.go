package main

import (
	"cmp"
	"context"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// byLedger reports whether the grouping (by GPU type, team or label) needs data from the ledger.
func (b *billing) byLedger() bool {
	label, ok := strings.CutPrefix(b.grouping, "label:")
	return b.groups != nil && (b.grouping == "gpuId" || b.grouping == "team" || ok && label != "")
}

// group returns the group of a cost in the ledger's history.
func (b *billing) group(c *money.Cost) string {
	if label, ok := strings.CutPrefix(b.grouping, "label:"); ok {
		return c.Labels[label]
	}
	switch b.grouping {
	case "gpuId":
		return cmp.Or(c.GPU, unknownType)
	case "team":
		return c.Team
	}
	return c.Resource
}

// allot assigns bills to groups by the costs in the ledger. It divides the bill of a resource in proportion to the costs that the ledger
// has for each group in the same bucket. If the ledger has no costs in that bucket, allot uses the costs in the whole range. The bill of a
// resource that is missing in the ledger gets no group, or an unknown GPU type.
func (b *billing) allot(ctx context.Context, bills []bill) ([]bill, error) {
	rows, err := b.history(ctx, bills)
	if err != nil {
		return nil, err
	}
	sums := make(tally)
	for i := range bills {
		x := &bills[i]
		for group, share := range b.shares(rows[x.group], x.start) {
			sums.add(x, group, share)
		}
	}
	return sums.rows(), nil
}

// history returns the ledger's costs of the billed resources, by resource. Without bills, it only checks the organisation.
func (b *billing) history(ctx context.Context, bills []bill) (map[string][]money.Cost, error) {
	unit, length := "day", 24*time.Hour
	if b.bucket == "hour" {
		unit, length = "hour", time.Hour
	}
	by := []string{"resource", "gpu"}
	if b.groups[b.grouping] == "" {
		by = append(by, b.grouping)
	}
	q := url.Values{"org": {b.org}, "by": by, "bucket": {unit}}
	if len(bills) > 0 {
		order := func(x, y bill) int { return x.start.Compare(y.start) }
		q.Set("from", slices.MinFunc(bills, order).start.Truncate(length).Format(time.RFC3339))
		q.Set("to", b.end(slices.MaxFunc(bills, order).start).Format(time.RFC3339))
	}
	var costs money.Costs
	if err := b.admin.get(ctx, "/admin/spend/history", q, &costs); err != nil {
		return nil, err
	}
	rows := make(map[string][]money.Cost)
	for _, c := range costs.Rows {
		rows[c.Resource] = append(rows[c.Resource], c)
	}
	return rows, nil
}

// end returns the end of the bucket that starts at a time.
func (b *billing) end(start time.Time) time.Time {
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

// shares returns each group's share of the costs of a resource in the bucket that starts at a time. rows is the cost history of the
// resource. The shares add up to 1, or to less than 1 if --gpu-id excludes some groups.
func (b *billing) shares(rows []money.Cost, at time.Time) map[string]*big.Rat {
	end := b.end(at)
	parts, total := b.sums(slices.DeleteFunc(slices.Clone(rows), func(c money.Cost) bool { return c.Start.Before(at) || !c.Start.Before(end) }))
	if total.Sign() == 0 {
		parts, total = b.sums(rows)
	}
	if total.Sign() == 0 && b.gpu != "" {
		return nil
	}
	if total.Sign() == 0 {
		return map[string]*big.Rat{b.group(&money.Cost{}): big.NewRat(1, 1)}
	}
	for _, part := range parts {
		part.Quo(part, total)
	}
	return parts
}

// sums returns the costs of each group, without groups that --gpu-id excludes, and the total of all costs.
func (b *billing) sums(rows []money.Cost) (parts map[string]*big.Rat, total *big.Rat) {
	parts, total = make(map[string]*big.Rat), new(big.Rat)
	for i := range rows {
		usd := decimal(rows[i].USD)
		total.Add(total, usd)
		if b.gpu != "" && rows[i].GPU != b.gpu {
			continue
		}
		group := b.group(&rows[i])
		parts[group] = new(big.Rat).Add(cmp.Or(parts[group], new(big.Rat)), usd)
	}
	return parts, total
}
