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
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// billing asks the gateway's v1 interface, which groups and filters by GPU type
// where v2 does not, with the key of a caller.
type billing struct {
	base, keyEnv   string
	output         string
	plot           bool
	bucket         string
	from, to       string
	grouping       string
	org            string
	admin          *adminClient
	id, gpu        string
	path           string
	groups         map[string]string // value of --grouping -> v1's name
	idName, idFlag string            // the filter by resource: v1's name, the option's
	fallback       string            // the default of --grouping
	resource       string            // v1's grouping by what has an owner in the ledger
}

func newBilling() *cobra.Command {
	cmd := group("billing", "Show what the platform has billed")
	cmd.Long = `Show what the platform has billed the organisation, per bucket of time.

The options are those of the platform's command-line client. The gateway is asked
with a caller's key, which ` + "`--key-env`" + ` names a variable of; groupings by team
and by label ask the ledger, by the admin listener, whose each resource was.`
	c := newAdminClient(cmd)
	for _, b := range []struct {
		use, short string
		billing
	}{
		{"pods", "Show what pods have cost", billing{
			path: "/v1/billing/pods", groups: map[string]string{"podId": "podId", "gpuId": "gpuTypeId"}, fallback: "gpuId", idName: "podId", idFlag: "pod-id", resource: "podId",
		}},
		{"serverless", "Show what endpoints have cost", billing{
			path:     "/v1/billing/endpoints",
			groups:   map[string]string{"endpointId": "endpointId", "podId": "podId", "gpuId": "gpuTypeId"},
			fallback: "endpointId", idName: "endpointId", idFlag: "endpoint-id", resource: "endpointId",
		}},
		{"network-volume", "Show what network volumes have cost", billing{path: "/v1/billing/networkvolumes"}},
	} {
		b.admin = c
		cmd.AddCommand(b.command(b.use, b.short))
	}
	return cmd
}

func (b *billing) command(use, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return b.validate() },
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			records, err := b.ask(cmd.Context(), progressOf(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			return b.write(cmd.OutOrStdout(), records)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&b.base, "gateway", "http://127.0.0.1:8080", "address of the gateway")
	f.StringVar(&b.keyEnv, "key-env", "TOLLGATE_KEY", "variable that holds the caller's key")
	f.StringVarP(&b.output, "output", "o", "table", "table, csv or json")
	f.BoolVar(&b.plot, "plot", false, "draw a bar per row of the table")
	f.StringVar(&b.bucket, "bucket-size", "day", "hour, day, week, month or year")
	f.StringVar(&b.from, "start-time", "", "first moment, RFC 3339 (default 30 days ago)")
	f.StringVar(&b.to, "end-time", "", "moment after the last, RFC 3339 (default now)")
	if b.groups != nil {
		f.StringVar(&b.grouping, "grouping", b.fallback, strings.Join(b.groupings(), ", ")+", and by the ledger team and label:NAME")
		f.StringVar(&b.org, "org", "", "organisation whose ledger is asked, for --grouping team and label:NAME")
		f.StringVar(&b.id, b.idFlag, "", "only this one")
		f.StringVar(&b.gpu, "gpu-id", "", "only this type of GPU")
	}
	return cmd
}

func (b *billing) groupings() []string {
	return slices.Sorted(maps.Keys(b.groups))
}

func (b *billing) validate() error {
	for _, option := range []struct {
		name, value string
		allowed     []string
	}{
		{"bucket-size", b.bucket, []string{"hour", "day", "week", "month", "year"}},
		{"output", b.output, []string{"table", "csv", "json"}},
		{"grouping", b.grouping, append(b.groupings(), "team", "label:NAME", "")},
	} {
		if option.name == "grouping" && b.byOwner() {
			continue
		}
		if !slices.Contains(option.allowed, option.value) {
			return fmt.Errorf("--%s %s: expected %s", option.name, option.value, strings.TrimSuffix(strings.Join(option.allowed, ", "), ", "))
		}
	}
	if b.byOwner() && b.org == "" {
		return fmt.Errorf("--grouping %s: requires --org, whose ledger is asked", b.grouping)
	}
	for name, value := range map[string]string{"start-time": b.from, "end-time": b.to} {
		if _, err := time.Parse(time.RFC3339, value); value != "" && err != nil {
			return fmt.Errorf("--%s %s: expected an RFC 3339 time, e.g. 2026-11-01T00:00:00Z", name, value)
		}
	}
	return nil
}

// ask returns the records as v1 has them, amounts in USD, by the grouping. A long range
// is asked for in parts.
func (b *billing) ask(ctx context.Context, progress func(done, of int)) ([]map[string]any, error) {
	key := os.Getenv(b.keyEnv)
	if key == "" {
		return nil, fmt.Errorf("the variable %s holds no key", b.keyEnv)
	}
	records := []map[string]any{}
	parts := b.parts(time.Now())
	for i, p := range parts {
		progress(i, len(parts))
		more, err := b.askOnce(ctx, key, p)
		if err != nil {
			return nil, err
		}
		records = append(records, more...)
	}
	progress(len(parts), len(parts))
	if b.byOwner() {
		return b.allot(ctx, records)
	}
	return records, nil
}

// part is one of the parts that a range is asked for in; a bound may be "".
type part struct{ from, to string }

// parts cuts a range where days begin, in UTC, into parts of a week of hours or a
// quarter of days. Larger buckets are few.
func (b *billing) parts(now time.Time) []part {
	days := map[string]int{"hour": 7, "day": 91}[b.bucket]
	from, err := time.Parse(time.RFC3339, b.from)
	if err != nil || days == 0 {
		return []part{{b.from, b.to}}
	}
	end := now
	if b.to != "" {
		end, _ = time.Parse(time.RFC3339, b.to) // it was validated
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

// progressOf returns what says on a terminal how much of several parts was answered.
func progressOf(w io.Writer) func(done, of int) {
	f, ok := w.(*os.File)
	if !ok {
		return func(int, int) {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(int, int) {}
	}
	return func(done, of int) { writeProgress(f, done, of) }
}

// writeProgress writes a line over the one before, and takes it away in the end.
func writeProgress(w io.Writer, done, of int) {
	switch {
	case of < 2:
	case done < of:
		_, _ = fmt.Fprintf(w, "\r%d of %d parts of the range were answered", done, of)
	default:
		_, _ = fmt.Fprint(w, "\r\x1b[K") // ECMA-48, EL: erase to the end of the line
	}
}

// askOnce asks for one part of the range.
func (b *billing) askOnce(ctx context.Context, key string, p part) ([]map[string]any, error) {
	grouping := b.groups[b.grouping]
	if b.byOwner() {
		grouping = b.resource
	}
	query := url.Values{}
	for name, value := range map[string]string{
		"bucketSize": b.bucket, "startTime": p.from, "endTime": p.to, "grouping": grouping, b.idName: b.id, "gpuTypeId": b.gpu,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(b.base, "/")+b.path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := new(http.Client).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	decoder := json.NewDecoder(res.Body)
	decoder.UseNumber()
	if res.StatusCode >= http.StatusBadRequest {
		var refusal struct{ Message string }
		_ = decoder.Decode(&refusal)
		return nil, errors.New(cmp.Or(refusal.Message, res.Status))
	}
	var records []map[string]any
	return records, decoder.Decode(&records)
}

// billed is one row: an amount of a bucket and a group.
type billed struct {
	time, group string
	amount      *big.Rat
}

func (b *billing) rows(records []map[string]any) (rows []billed, total *big.Rat) {
	total = new(big.Rat)
	for _, record := range records {
		amount, ok := new(big.Rat).SetString(fmt.Sprint(record["amount"]))
		if !ok {
			amount = new(big.Rat)
		}
		text := func(name string) string { s, _ := record[name].(string); return s }
		rows = append(rows, billed{time: text("time"), group: text(cmp.Or(b.groups[b.grouping], b.grouping)), amount: amount})
		total.Add(total, amount)
	}
	return rows, total
}

func (b *billing) write(w io.Writer, records []map[string]any) error {
	rows, total := b.rows(records)
	switch b.output {
	case "json":
		return writeJSON(w, records)
	case "csv":
		table := [][]string{{"time", cmp.Or(b.grouping, "group"), "usd"}}
		for _, row := range rows {
			table = append(table, []string{row.time, row.group, row.amount.FloatString(6)})
		}
		return admin.WriteCSV(w, table)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "TIME\t%s\tUSD\n", strings.ToUpper(b.grouping))
	largest := new(big.Rat)
	for _, row := range rows {
		if row.amount.Cmp(largest) > 0 {
			largest = row.amount
		}
	}
	for _, row := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s", row.time, row.group, row.amount.FloatString(4))
		if b.plot {
			_, _ = fmt.Fprintf(t, "\t%s", bar(row.amount, largest))
		}
		_, _ = fmt.Fprintln(t)
	}
	_, _ = fmt.Fprintf(t, "total\t\t%s\n", total.FloatString(4))
	return t.Flush()
}

// barWidth is the length of the longest bar, in cells of a terminal.
const barWidth = 40

// bar draws n on a scale that ends at largest, in eighths of a cell.
func bar(n, largest *big.Rat) string {
	if largest.Sign() <= 0 || n.Sign() <= 0 {
		return ""
	}
	share, _ := new(big.Rat).Quo(n, largest).Float64()
	eighths := int(share*barWidth*8 + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string(rune('█' + 8 - rest))
	}
	return text
}
