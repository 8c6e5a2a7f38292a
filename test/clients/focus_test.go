package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// draftRules are those of the validator's rule set "1.0" that are about names of a draft
// (Provider, Publisher, InvoiceIssuer, ResourceID, ChargeType), which the specification
// does not have, and one whose list of currencies is not in its package.
var draftRules = []string{ //nolint:gochecknoglobals // read only
	"BillingCurrency_IsCurrencyCode", "InvoiceIssuer_Required", "Provider_Required", "Publisher_Required", "ResourceID_Required", "SkuPriceId_Nullable",
}

// The export holds against the rules of the specification's own validator, as far as
// it knows them: those of FOCUS 1.0, whose columns 1.2 has, too.
func TestFOCUSValidator(t *testing.T) {
	t.Parallel()
	python := installed(t, "focus-validator-1.0.0/bin/python")
	start := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	var rows []money.Cost
	for _, kind := range []string{"pod", "cluster", "endpoint", "network_volume"} {
		rows = append(rows,
			money.Cost{
				Start: start, End: start.AddDate(0, 0, 1), CostGroup: money.CostGroup{
					Team: "research", Key: "ann", Kind: kind, Resource: "a-" + kind, Name: "a, \"b\"",
					GPU: "NVIDIA L4", DataCenter: "EU-RO-1",
				}, Decision: "01J", USD: "10.322581", PerHour: "0.430108", Hours: "23.999974",
			},
			money.Cost{
				Start: start, End: start.Add(time.Hour), CostGroup: money.CostGroup{Kind: kind, Resource: "c-" + kind}, USD: "0.008219", PerHour: "0.008219", Hours: "1.000000",
				ListPerHour: "0.010274", ListUSD: "0.010274", GB: 100,
			},
			money.Cost{Start: start, End: start.Add(time.Hour), CostGroup: money.CostGroup{Kind: kind, Resource: "b-" + kind}, USD: "0.43"},
		)
	}
	file := filepath.Join(t.TempDir(), "export.csv")
	var out strings.Builder
	if err := money.WriteFOCUS(&out, "acme", rows); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	program := exec.CommandContext(ctx, filepath.Join(filepath.Dir(python), "focus-validator"), "--data-file", file, "--validate-version", "1.0")
	program.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}
	program.WaitDelay = time.Second
	report, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	var failed []string
	for _, m := range regexp.MustCompile(`(?m)^(\S+) failed:$`).FindAllStringSubmatch(string(report), -1) {
		failed = append(failed, m[1])
	}
	slices.Sort(failed)
	if diff := cmp.Diff(draftRules, failed); diff != "" {
		t.Errorf("rules that fail (-want +got):\n%s\n%s", diff, report)
	}
}
