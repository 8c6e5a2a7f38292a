package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// billing reads the platform's bills through the gateway with a caller's key. The v2 API cannot group or filter bills by GPU type, team or
// label, so the command does that with the history of the ledger.
type billing struct {
	callerClient

	out      *output
	plot     bool
	bucket   string
	from, to string
	grouping string
	org      string
	admin    *adminClient
	id, gpu  string
	// path is the v2 path. record is the name of the member with the resource ID in a bill, and of the query parameter that filters by
	// resource ID.
	path, record string
	groups       map[string]string // JSON member by value of --grouping
	idFlag       string            // flag that filters by resource
	fallback     string            // default of --grouping
}

func newBilling() *cobra.Command {
	cmd := group("billing", "Show the platform's bills", "  tollgate billing pods --grouping podId --plot")
	cmd.Long = `Show the platform's bills for the organisation, per bucket of time.

The options match the platform's command-line client. ` + "`--key-env`" + ` names
the environment variable that holds a caller's key. ` + "`--gpu-id`" + ` and groupings by
GPU type, team and label read the history of the ledger through the admin listener.`
	for _, b := range []struct {
		use, short string
		billing
	}{
		{"pods", "Show the costs of pods", billing{
			path: "/v2/billing/pods", record: "podId", groups: map[string]string{"podId": "podId", "gpuId": "gpuTypeId"},
			fallback: "podId", idFlag: "pod-id",
		}},
		{"serverless", "Show the costs of endpoints", billing{
			path: "/v2/billing/serverless", record: "serverlessId",
			groups:   map[string]string{"endpointId": "endpointId", "podId": "endpointId", "gpuId": "gpuTypeId"},
			fallback: "endpointId", idFlag: "endpoint-id",
		}},
		{"network-volume", "Show the costs of network volumes", billing{path: "/v2/billing/network-volumes", record: "networkVolumeId"}},
	} {
		cmd.AddCommand(b.command(b.use, b.short))
	}
	return cmd
}

func (b *billing) command(use, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: named(nil),
		Example: "  tollgate billing " + use + " --bucket-size month --start-time 2026-01-01T00:00:00Z -o csv",
		PreRunE: func(*cobra.Command, []string) error { return b.validate() },
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			b.notes = cmd.ErrOrStderr()
			records, err := b.ask(cmd.Context(), progressOf(b.notes))
			if err != nil {
				return err
			}
			return b.write(cmd.OutOrStdout(), records)
		}),
	}
	f := cmd.Flags()
	b.flags(cmd)
	b.out = outputFlag(cmd)
	f.BoolVar(&b.plot, "plot", false, "draw a bar for each row")
	f.StringVar(&b.bucket, "bucket-size", "day", "period that each row covers: hour, day, week, month or year")
	f.StringVar(&b.from, "start-time", "", "start of the range as an RFC 3339 time (default: 30 days ago)")
	f.StringVar(&b.to, "end-time", "", "exclusive end of the range as an RFC 3339 time (default: now)")
	complete(cmd, "bucket-size", cobra.FixedCompletions(bucketSizes(), cobra.ShellCompDirectiveNoFileComp))
	if b.groups != nil {
		f.StringVar(&b.grouping, "grouping", b.fallback, "group costs by: "+strings.Join(append(b.groupings(), "team", "label:NAME"), ", "))
		f.StringVar(&b.org, "org", "", "organisation whose ledger contains the GPU types, teams and labels")
		f.StringVar(&b.id, b.idFlag, "", "show only the resource with this ID")
		f.StringVar(&b.gpu, "gpu-id", "", "show only costs of this GPU type or, for endpoints, of this GPU pool")
		b.admin = newAdminClient(cmd)
		complete(cmd, "org", orgNames)
		complete(cmd, "grouping", cobra.FixedCompletions(append(b.groupings(), "team", "label:"), cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func bucketSizes() []string { return []string{"hour", "day", "week", "month", "year"} }

func (b *billing) groupings() []string {
	return slices.Sorted(maps.Keys(b.groups))
}

func (b *billing) validate() error {
	groupings := append(b.groupings(), "team", "label:NAME")
	switch {
	case !slices.Contains(bucketSizes(), b.bucket):
		return fmt.Errorf("--bucket-size %s: expected %s", b.bucket, strings.Join(bucketSizes(), ", "))
	case b.grouping != "" && !b.byLedger() && !slices.Contains(groupings, b.grouping):
		return fmt.Errorf("--grouping %s: expected %s", b.grouping, strings.Join(groupings, ", "))
	case b.org != "" && b.gpu == "" && !b.byLedger():
		return errors.New("--org requires --gpu-id, or --grouping by gpuId, team or label:NAME; all other bills belong to the key's organisation")
	case b.org != "":
	case b.byLedger():
		return fmt.Errorf("--grouping %s requires the ledger of an organisation: also set --org", b.grouping)
	case b.gpu != "":
		return errors.New("--gpu-id requires the ledger of an organisation: also set --org")
	}
	for name, value := range map[string]string{"start-time": b.from, "end-time": b.to} {
		if _, err := time.Parse(time.RFC3339, value); value != "" && err != nil {
			return fmt.Errorf("--%s %s: must be an RFC 3339 time such as 2026-11-01T00:00:00Z", name, value)
		}
	}
	return nil
}

// ask requests the bills and returns the amounts by time and group.
func (b *billing) ask(ctx context.Context, progress func(done, of int)) ([]bill, error) {
	key, err := b.key(ctx)
	if err != nil {
		return nil, err
	}
	bills, err := b.bills(ctx, key, progress)
	if err != nil {
		return nil, err
	}
	if b.grouping == "podId" && b.groups["podId"] == "endpointId" {
		_, _ = fmt.Fprintln(b.notes, "The platform bills endpoints, not single workers: the rows show endpoints.")
	}
	if b.byLedger() || b.gpu != "" {
		return b.allot(ctx, bills)
	}
	sums := make(tally)
	for i := range bills {
		group := bills[i].group
		if b.groups == nil {
			group = ""
		}
		sums.add(&bills[i], group, big.NewRat(1, 1))
	}
	return sums.rows(), nil
}

// unknownType is the group of amounts whose GPU type is not in the ledger.
const unknownType = "unknown"

// bill is the amount billed for one group in one time bucket. Bills of the platform are grouped by resource.
type bill struct {
	slot
	amount *big.Rat
}

// slot is a group in a time bucket, which begins at start, in UTC.
type slot struct {
	start time.Time
	group string
}

// tally maps slots to sums of amounts.
type tally map[slot]*big.Rat

// add adds a share of a bill to a group.
func (t tally) add(x *bill, group string, share *big.Rat) {
	key := slot{x.start, group}
	if t[key] == nil {
		t[key] = new(big.Rat)
	}
	t[key].Add(t[key], new(big.Rat).Mul(x.amount, share))
}

// rows returns the sums by time and group, rounded to nine decimals.
func (t tally) rows() []bill {
	rows := make([]bill, 0, len(t))
	order := func(x, y slot) int { return cmp.Or(x.start.Compare(y.start), cmp.Compare(x.group, y.group)) }
	for _, key := range slices.SortedFunc(maps.Keys(t), order) {
		rows = append(rows, bill{key, decimal(t[key].FloatString(9))})
	}
	return rows
}

// bills requests the bills, in several requests for a long range.
func (b *billing) bills(ctx context.Context, key string, progress func(done, of int)) ([]bill, error) {
	var bills []bill
	parts := b.parts(time.Now())
	for i, p := range parts {
		progress(i, len(parts))
		var answer struct {
			Records []map[string]any `json:"records"`
		}
		query := url.Values{}
		for name, value := range map[string]string{"bucketSize": b.bucket, "startTime": p.from, "endTime": p.to, b.record: b.id} {
			if value != "" {
				query.Set(name, value)
			}
		}
		if err := b.get(ctx, key, b.path+"?"+query.Encode(), &answer); err != nil {
			return nil, err
		}
		for _, record := range answer.Records {
			text := func(name string) string { s, _ := record[name].(string); return s }
			amount, ok := new(big.Rat).SetString(fmt.Sprint(record["totalAmount"]))
			start, err := time.Parse(time.RFC3339, text("startTime"))
			if !ok || err != nil {
				return nil, fmt.Errorf("invalid record from the gateway: time or amount is missing: %v", record)
			}
			bills = append(bills, bill{slot{start.UTC().Truncate(time.Second), text(b.record)}, amount})
		}
	}
	progress(len(parts), len(parts))
	return bills, nil
}

// part is a part of the requested range. Either bound may be "".
type part struct{ from, to string }

// parts splits the range into requests at day boundaries in UTC. A part has at most 14 days with hourly buckets and at most 366 days with
// daily buckets. Ranges with longer buckets are not split.
func (b *billing) parts(now time.Time) []part {
	days := map[string]int{"hour": 14, "day": 366}[b.bucket]
	from, err := time.Parse(time.RFC3339, b.from)
	if err != nil || days == 0 {
		return []part{{b.from, b.to}}
	}
	end := now
	if b.to != "" {
		end, _ = time.Parse(time.RFC3339, b.to) // already validated
	}
	var out []part
	at := b.from
	for next := from.UTC().Truncate(24*time.Hour).AddDate(0, 0, days); next.Before(end); next = next.AddDate(0, 0, days) {
		border := next.Format(time.RFC3339)
		out = append(out, part{at, border})
		at = border
	}
	return append(out, part{at, b.to})
}

// progressOf returns a function that shows progress if w is a terminal.
func progressOf(w io.Writer) func(done, of int) {
	if !isTerminal(w) {
		return func(int, int) {}
	}
	return func(done, of int) { writeProgress(w, done, of) }
}

// writeProgress replaces the progress line, and erases it at the end.
func writeProgress(w io.Writer, done, of int) {
	switch {
	case of < 2:
	case done < of:
		_, _ = fmt.Fprintf(w, "\r%d of %d parts of the range received", done, of)
	default:
		_, _ = fmt.Fprint(w, "\r\x1b[K") // ECMA-48, EL: erase to the end of the line
	}
}

// write writes the amounts by time and group. The JSON objects have the group in a member with the platform's name, or no group.
func (b *billing) write(w io.Writer, rows []bill) error {
	member := cmp.Or(b.groups[b.grouping], b.grouping)
	records := make([]map[string]any, len(rows))
	total, largest := new(big.Rat), new(big.Rat)
	for i, row := range rows {
		amount := strings.TrimSuffix(strings.TrimRight(row.amount.FloatString(9), "0"), ".")
		records[i] = map[string]any{"time": moment(&row.start), "amount": json.Number(amount)}
		if member == "" {
			rows[i].group = ""
		} else {
			records[i][member] = row.group
		}
		if total.Add(total, row.amount); row.amount.Cmp(largest) > 0 {
			largest = row.amount
		}
	}
	t := sheet{{"time", cmp.Or(b.grouping, "group"), "usd"}}
	if b.out.people() {
		t[0][1] = b.grouping
	}
	for _, row := range rows {
		t.add(row.start, row.group, usd(row.amount.FloatString(6)))
		if b.plot && b.out.people() {
			t[len(t)-1] = append(t[len(t)-1], bar(row.amount, largest, barWidth))
		}
	}
	if b.out.people() {
		t.add("total", "", usd(total.FloatString(6)))
	}
	return b.out.write(w, records, t)
}

// barWidth is the maximum length of a bar, in terminal cells.
const barWidth = 40

// bar draws n as a bar with a resolution of an eighth of a cell. The bar for largest is width cells long.
func bar(n, largest *big.Rat, width int) string {
	if largest.Sign() <= 0 || n.Sign() <= 0 {
		return ""
	}
	part, _ := new(big.Rat).Quo(n, largest).Float64()
	eighths := int(part*float64(width)*8 + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string(rune('█' + 8 - rest))
	}
	return text
}
