package money_test

import (
	"encoding/csv"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// Columns of FOCUS 1.2 that every data set has, or has if it is about usage, prices by
// unit, sub-accounts, regions or resources, and their permitted values; "" is null.
var columns = map[string]string{
	"BilledCost": decimal, "BillingAccountId": text, "BillingAccountName": text, "BillingAccountType": text, "BillingCurrency": currency,
	"BillingPeriodEnd": moment, "BillingPeriodStart": moment,
	"ChargeCategory": `Usage|Purchase|Tax|Credit|Adjustment`, "ChargeClass": `|Correction`, "ChargeDescription": text,
	"ChargeFrequency": `One-Time|Recurring|Usage-Based`, "ChargePeriodEnd": moment, "ChargePeriodStart": moment,
	"ConsumedQuantity": decimal, "ConsumedUnit": text, "ContractedCost": decimal, "ContractedUnitPrice": decimal, "EffectiveCost": decimal,
	"InvoiceId": `.*`, "InvoiceIssuerName": text, "ListCost": decimal, "ListUnitPrice": decimal,
	"PricingCategory": `Standard|Dynamic|Committed|Other`, "PricingCurrency": currency, "PricingQuantity": decimal, "PricingUnit": text,
	"ProviderName": text, "PublisherName": text, "RegionId": `.*`, "RegionName": `.*`, "ResourceId": text, "ResourceName": `.*`, "ResourceType": text,
	"ServiceCategory": `Compute|Storage|Other`, "ServiceName": text, "ServiceSubcategory": `Containers|Serverless Compute|File Storage|Other \(Other\)`,
	"SkuId": text, "SkuMeter": text, "SkuPriceDetails": `|\{.*\}`, "SkuPriceId": text,
	"SubAccountId": `.*`, "SubAccountName": `.*`, "SubAccountType": `.*`, "Tags": `\{.*\}`,
}

const (
	decimal  = `-?[0-9]+(\.[0-9]+)?`
	moment   = `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z`
	currency = `[A-Z]{3}`
	text     = `.+`
)

func TestWriteFOCUS(t *testing.T) {
	start := time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)
	var b strings.Builder
	err := money.WriteFOCUS(&b, "acme", []money.Cost{
		{Start: start, End: start.AddDate(0, 0, 1), CostGroup: money.CostGroup{Team: "research", Key: "ann", Kind: "pod", Resource: "p1", Name: `a, "b"`, GPU: "NVIDIA L4", DataCenter: "EU-RO-1", Labels: map[string]string{"project": "llm", "team": "mine"}}, USD: "10.32"},
		{Start: start, End: start.Add(time.Hour), CostGroup: money.CostGroup{Kind: "network_volume", Resource: "v1"}, USD: "0.000001"},
		{Start: start, End: start.Add(time.Hour), CostGroup: money.CostGroup{Kind: "endpoint", Resource: "e1"}, USD: "3"},
		{Start: start, End: start.Add(time.Hour), CostGroup: money.CostGroup{Kind: "cluster", Resource: "c1"}, USD: "3"},
		{Start: start, End: start.Add(time.Hour), CostGroup: money.CostGroup{Kind: "adjustment", Resource: "r1", Name: "credit: a wrong price", Team: "research"}, USD: "-17.85"},
		{Start: start, End: start.Add(time.Hour), CostGroup: money.CostGroup{Kind: "adjustment", Resource: "r2", Name: "reset: a test"}, USD: "-1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(rows) != 7 {
		t.Fatalf("%d rows (%v), want a header and 6", len(rows), err)
	}
	if !slices.IsSorted(rows[0]) {
		t.Errorf("the columns are not in order: %v", rows[0])
	}
	for name, pattern := range columns {
		i := slices.Index(rows[0], name)
		if i < 0 {
			t.Errorf("no column %s", name)
			continue
		}
		for _, row := range rows[1:] {
			if !regexp.MustCompile(`^(` + pattern + `)$`).MatchString(row[i]) {
				t.Errorf("%s = %q, want %s", name, row[i], pattern)
			}
		}
	}
	value := func(row int, name string) string { return rows[row][slices.Index(rows[0], name)] }
	if got, want := value(1, "BillingPeriodEnd"), "2027-01-01T00:00:00Z"; got != want {
		t.Errorf("BillingPeriodEnd = %s, want %s", got, want)
	}
	var tags map[string]string
	if err := json.Unmarshal([]byte(value(1, "Tags")), &tags); err != nil || tags["tollgate/team"] != "research" || tags["tollgate/key"] != "ann" || tags["project"] != "llm" || tags["team"] != "mine" {
		t.Errorf("Tags = %s (%v)", value(1, "Tags"), err)
	}
	for i, want := range [][]string{{"Usage", "", "Usage-Based"}, {"Credit", "Correction", "One-Time"}, {"Adjustment", "Correction", "One-Time"}} {
		line := i + 4
		if got := []string{value(line, "ChargeCategory"), value(line, "ChargeClass"), value(line, "ChargeFrequency")}; !slices.Equal(got, want) {
			t.Errorf("line %d: %q, want %q", line, got, want)
		}
	}
	if got := value(5, "BilledCost"); got != "-17.85" {
		t.Errorf("a credit costs %s, want -17.85", got)
	}
	if got := value(2, "ServiceCategory"); got != "Storage" {
		t.Errorf("ServiceCategory of a volume = %s, want Storage", got)
	}
}
