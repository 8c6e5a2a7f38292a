package platform

import (
	"strconv"
	"time"
)

// maxBuckets bounds how finely a long history can be cut.
const maxBuckets = 20_000

// billView is how one billing route shows the ledger: which meters, and whether per resource
// or all together.
type billView struct {
	path, operation string

	kind   string // of meter; empty is every kind
	filter string // query parameter and record member that names one resource
	unique string // metadata member that counts resources
}

func billViews() []billView {
	return []billView{
		{"/v2/billing", "listBilling", "", "", ""},
		{"/v2/billing/pods", "listPodBilling", meterPod, "podId", "uniquePodCount"},
		{"/v2/billing/serverless", "listServerlessBilling", meterServerless, "serverlessId", "uniqueServerlessCount"},
		{"/v2/billing/endpoints", "listEndpointBilling", meterPublic, "", ""},
		{"/v2/billing/network-volumes", "listNetworkVolumeBilling", meterVolume, "networkVolumeId", "uniqueNetworkVolumeCount"},
		{"/v2/billing/clusters", "listClusterBilling", meterCluster, "clusterId", "uniqueClusterCount"},
	}
}

func billRoutes() []route {
	var routes []route
	for _, v := range billViews() {
		query := []string{"startTime", "endTime", "bucketSize", "lastN"}
		if v.filter != "" {
			query = append(query, v.filter)
		}
		routes = append(routes, getRoute(v.path, v.operation, v.bill, query...))
	}
	return routes
}

// billQuery is the time asked for, resolved to whole buckets.
type billQuery struct {
	size     string
	from, to time.Time
	id       string // the resource asked for; empty is all
}

// firstBucket is where the first bucket begins: RFC 3339 writes years of four
// digits, and this Monday begins a bucket of every size.
func firstBucket() time.Time { return time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC) }

// floor is the start of the bucket t is in, which is in year 1 or later. Buckets
// are cut in UTC and weeks begin on Monday.
func floor(t time.Time, size string) time.Time {
	y, m, d := t.Date()
	switch size {
	case "hour":
		return t.Truncate(time.Hour)
	case "week":
		sinceMonday := (int(t.Weekday()) + 6) % 7
		return time.Date(y, m, d-sinceMonday, 0, 0, 0, 0, time.UTC)
	case "month":
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	case "year":
		return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC)
	default:
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	}
}

// step moves a bucket's start by n buckets.
func step(t time.Time, size string, n int) time.Time {
	switch size {
	case "hour":
		return t.Add(time.Duration(n) * time.Hour)
	case "week":
		return t.AddDate(0, 0, 7*n)
	case "month":
		return t.AddDate(0, n, 0)
	case "year":
		return t.AddDate(n, 0, 0)
	default:
		return t.AddDate(0, 0, n)
	}
}

func (x *exchange) billQuery(v billView) (billQuery, error) {
	now := x.s.clock.Now()
	p := &params{q: x.query}
	q := billQuery{size: "day", from: p.moment("startTime"), to: p.moment("endTime")}
	if p.has("bucketSize") {
		q.size = p.enum("bucketSize", "hour", "day", "week", "month", "year")
	}
	lastN := p.integer("lastN", 1, maxBuckets, 0)
	if v.filter != "" {
		q.id = x.query.Get(v.filter)
	}
	if err := p.err(); err != nil {
		return q, err
	}
	if lastN > 0 {
		if p.has("startTime") || p.has("endTime") {
			return q, badRequest("lastN excludes startTime and endTime")
		}
		q.from = latest(firstBucket(), step(floor(now, q.size), q.size, 1-lastN))
		q.to = step(floor(now, q.size), q.size, 1)
		return q, nil
	}
	if !p.has("startTime") {
		q.from = now.AddDate(0, 0, -30)
	}
	if !p.has("endTime") {
		q.to = now
	}
	q.from = floor(latest(firstBucket(), q.from), q.size)
	if end := floor(latest(firstBucket(), q.to), q.size); end.Before(q.to) {
		q.to = step(end, q.size, 1)
	}
	if q.to.Year() > 9999 {
		return q, badRequest("endTime is in a bucket that ends after the year 9999")
	}
	if !q.from.Before(q.to) {
		return q, badRequest("startTime must be before endTime")
	}
	if step(q.from, q.size, maxBuckets).Before(q.to) {
		return q, badRequest("the time asked for is more than " + strconv.Itoa(maxBuckets) + " buckets long")
	}
	return q, nil
}

// latest is the later of two instants, and earliest the earlier.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// between adds up what a meter charged in [from, to), now being the end of what
// is still charged.
func (m *meter) between(from, to, now time.Time) amounts {
	var sum amounts
	for _, s := range m.Spans {
		start, end := latest(s.From, from), earliest(s.end(now), to)
		if start.Before(end) {
			sum.add(s.Rate, end.Sub(start).Hours())
		}
	}
	for _, l := range m.Lumps {
		if !l.At.Before(from) && l.At.Before(to) {
			sum.add(l.Amount, 1)
		}
	}
	return sum
}

// life is the time a meter has anything to tell of.
func (m *meter) life(now time.Time) (from, to time.Time) {
	for _, s := range m.Spans {
		from, to = widen(from, to, s.From, s.end(now))
	}
	for _, l := range m.Lumps {
		from, to = widen(from, to, l.At, l.At.Add(1))
	}
	return from, to
}

func widen(from, to, start, end time.Time) (time.Time, time.Time) {
	if from.IsZero() {
		from = start
	}
	return earliest(from, start), latest(to, end)
}

// billRecord is one line of a bill.
type billRecord struct {
	from, to time.Time
	id       string
	amounts  amounts
}

// bill answers one billing route.
func (v billView) bill(x *exchange) (reply, error) {
	q, err := x.billQuery(v)
	if err != nil {
		return reply{}, err
	}
	x.lock()
	defer x.unlock()
	records := x.perResourceLocked(v, q)
	if v.filter == "" {
		records = perBucket(q, records)
	}
	return ok(v.record(q, records)), nil
}

// perResourceLocked makes one record per resource and bucket in which it was
// charged for anything, bucket by bucket.
func (x *exchange) perResourceLocked(v billView, q billQuery) []billRecord {
	var records []billRecord
	byBucket := map[time.Time][]billRecord{}
	for _, m := range x.acct.meters.order {
		if v.kind != "" && m.Kind != v.kind || q.id != "" && m.ID != q.id {
			continue
		}
		first, last := m.life(x.now)
		last = earliest(last, q.to)
		for at := floor(latest(first, q.from), q.size); at.Before(last); at = step(at, q.size, 1) {
			end := step(at, q.size, 1)
			if sum := m.between(at, end, x.now); sum.total() > 0 {
				byBucket[at] = append(byBucket[at], billRecord{from: at, to: end, id: m.ID, amounts: sum})
			}
		}
	}
	for at := q.from; at.Before(q.to); at = step(at, q.size, 1) {
		records = append(records, byBucket[at]...)
	}
	return records
}

// perBucket adds records up to one per bucket, empty ones included.
func perBucket(q billQuery, records []billRecord) []billRecord {
	var out []billRecord
	for at := q.from; at.Before(q.to); at = step(at, q.size, 1) {
		one := billRecord{from: at, to: step(at, q.size, 1)}
		for len(records) > 0 && records[0].from.Equal(at) {
			one.amounts.add(records[0].amounts, 1)
			records = records[1:]
		}
		out = append(out, one)
	}
	return out
}

func (v billView) record(q billQuery, records []billRecord) object {
	var totals amounts
	unique, list := map[string]bool{}, []object{}
	for _, r := range records {
		one := append(object{"startTime", stamp(r.from), "endTime", stamp(r.to)}, v.shown(r.amounts)...)
		if v.filter != "" {
			one = append(one, v.filter, r.id)
			unique[r.id] = true
		}
		list = append(list, one)
		totals.add(r.amounts, 1)
	}
	query := object{"startTime", stamp(q.from), "endTime", stamp(q.to), "bucketSize", q.size}
	if v.filter != "" {
		query = append(query, v.filter, optional(q.id))
	}
	metadata := object{"query", query, "recordCount", len(records), "totals", v.shown(totals)}
	if v.unique != "" {
		metadata = append(metadata, v.unique, len(unique))
	}
	return object{"records", list, "metadata", metadata}
}

// shown is totalAmount and what it consists of.
func (v billView) shown(a amounts) object {
	total, o := 0.0, object{}
	for i, c := range billed {
		name := c.own
		if v.kind == "" {
			name = c.name
		} else if v.kind != c.kind {
			continue
		}
		if total += a[i]; name != "" {
			o = append(o, name, a[i])
		}
	}
	return append(o, "totalAmount", total)
}
