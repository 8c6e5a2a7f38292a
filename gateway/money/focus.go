package money

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// focusColumns are the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification, section "Columns") that apply to the ledger's
// data, in alphabetical order, followed by our own columns, which begin with x_. Columns that are always null are included if the
// specification or an earlier version requires them.
var focusColumns = []struct { //nolint:gochecknoglobals // read only
	name  string
	value func(org string, c *Cost) string
}{
	{"AvailabilityZone", null},
	{"BilledCost", billed},
	{"BillingAccountId", billingAccount},
	{"BillingAccountName", billingAccount},
	{"BillingAccountType", always("Organisation")},
	{"BillingCurrency", always("USD")},
	{"BillingPeriodEnd", func(_ string, c *Cost) string { return instant(monthOf(c.Start).AddDate(0, 1, 0)) }},
	{"BillingPeriodStart", func(_ string, c *Cost) string { return instant(monthOf(c.Start)) }},
	{"CapacityReservationId", null},
	{"CapacityReservationStatus", null},
	{"ChargeCategory", func(_ string, c *Cost) string {
		switch {
		case !c.adjusted():
			return "Usage"
		case strings.HasPrefix(c.Name, "credit: "):
			return "Credit"
		}
		return "Adjustment"
	}},
	{"ChargeClass", ifAdjusted("Correction", "")},
	{"ChargeDescription", func(_ string, c *Cost) string { return c.Kind + " " + cmp.Or(c.Name, c.Resource) }},
	{"ChargeFrequency", ifAdjusted("One-Time", "Usage-Based")},
	{"ChargePeriodEnd", func(_ string, c *Cost) string { return instant(c.End) }},
	{"ChargePeriodStart", func(_ string, c *Cost) string { return instant(c.Start) }},
	{"CommitmentDiscountCategory", null},
	{"CommitmentDiscountId", null},
	{"CommitmentDiscountName", null},
	{"CommitmentDiscountQuantity", null},
	{"CommitmentDiscountStatus", null},
	{"CommitmentDiscountType", null},
	{"CommitmentDiscountUnit", null},
	{"ConsumedQuantity", quantity},
	{"ConsumedUnit", unit},
	{"ContractedCost", billed},
	{"ContractedUnitPrice", unitPrice},
	{"EffectiveCost", billed},
	{"InvoiceId", null},
	{"InvoiceIssuerName", always(issuer)},
	{"ListCost", func(_ string, c *Cost) string { return cmp.Or(c.ListUSD, c.USD) }},
	{"ListUnitPrice", listPrice},
	{"PricingCategory", always("Standard")},
	{"PricingCurrency", always("USD")},
	{"PricingCurrencyContractedUnitPrice", unitPrice},
	{"PricingCurrencyEffectiveCost", billed},
	{"PricingCurrencyListUnitPrice", listPrice},
	{"PricingQuantity", quantity},
	{"PricingUnit", unit},
	{"ProviderName", always(issuer)},
	{"PublisherName", always(issuer)},
	{"RegionId", func(_ string, c *Cost) string { return c.DataCenter }},
	{"RegionName", func(_ string, c *Cost) string { return c.DataCenter }},
	{"ResourceId", func(_ string, c *Cost) string { return c.Resource }},
	{"ResourceName", func(_ string, c *Cost) string { return c.Name }},
	{"ResourceType", func(_ string, c *Cost) string { return c.Kind }},
	{"ServiceCategory", func(_ string, c *Cost) string { return serviceOf(c.Kind).category }},
	{"ServiceName", func(_ string, c *Cost) string { return serviceOf(c.Kind).name }},
	{"ServiceSubcategory", func(_ string, c *Cost) string { return serviceOf(c.Kind).subcategory }},
	{"SkuId", sku},
	{"SkuMeter", func(_ string, c *Cost) string { return serviceOf(c.Kind).name }},
	{"SkuPriceDetails", null},
	{"SkuPriceId", sku},
	{"SubAccountId", func(_ string, c *Cost) string { return c.Team }},
	{"SubAccountName", func(_ string, c *Cost) string { return c.Team }},
	{"SubAccountType", func(_ string, c *Cost) string {
		if c.Team == "" {
			return ""
		}
		return "Team"
	}},
	{"Tags", tags},
	{"x_Decision", func(_ string, c *Cost) string { return c.Decision }},
	{"x_GpuType", func(_ string, c *Cost) string { return c.GPU }},
	{"x_Key", func(_ string, c *Cost) string { return c.Key }},
}

// adjusted reports whether a cost is an operator's adjustment.
func (c *Cost) adjusted() bool { return c.Kind == "adjustment" }

// ifAdjusted returns a column function with one value for adjustments and another for all other costs.
func ifAdjusted(yes, no string) func(string, *Cost) string {
	return func(_ string, c *Cost) string {
		if c.adjusted() {
			return yes
		}
		return no
	}
}

// issuer is the name of the invoice issuer.
const issuer = "Compute Platform"

func null(string, *Cost) string                 { return "" }
func billed(_ string, c *Cost) string           { return c.USD }
func billingAccount(org string, _ *Cost) string { return org }
func sku(_ string, c *Cost) string              { return cmp.Or(c.GPU, c.Kind) }

// quantity returns the number of hours that a resource existed at one rate, multiplied by the size in GB for a network volume. For costs
// without a rate, such as runs and corrections by bills, it returns the cost itself.
func quantity(_ string, c *Cost) string {
	switch {
	case c.Hours == "":
		return c.USD
	case c.GB > 0:
		return scaled(c.Hours, float64(c.GB))
	}
	return c.Hours
}

func unit(_ string, c *Cost) string {
	switch {
	case c.Hours == "":
		return "USD"
	case c.GB > 0:
		return "GB-Hours"
	}
	return "Hours"
}

// unitPrice returns the agreed rate, and listPrice the rate on the platform's price list.
func unitPrice(_ string, c *Cost) string { return c.perUnit(c.PerHour) }
func listPrice(_ string, c *Cost) string { return c.perUnit(cmp.Or(c.ListPerHour, c.PerHour)) }

// perUnit converts an hourly rate to a rate per unit of quantity.
func (c *Cost) perUnit(perHour string) string {
	if perHour != "" && c.GB > 0 {
		return scaled(perHour, 1/float64(c.GB))
	}
	return cmp.Or(perHour, "1.0")
}

// scaled multiplies a decimal number by a factor. It keeps 12 decimals, which are enough for six significant digits at a thousand
// terabytes.
func scaled(number string, factor float64) string {
	n, _ := strconv.ParseFloat(number, 64) // written by this program
	return strconv.FormatFloat(n*factor, 'f', 12, 64)
}

func always(v string) func(string, *Cost) string { return func(string, *Cost) string { return v } }
func instant(t time.Time) string                 { return t.UTC().Format("2006-01-02T15:04:05Z") }
func monthOf(t time.Time) time.Time              { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }

// tagPrefix is the prefix of tags that no caller has set, so that they do not clash with labels (FOCUS 1.2, column Tags).
const tagPrefix = "tollgate/"

func tags(_ string, c *Cost) string {
	set := make(map[string]string)
	maps.Copy(set, c.Labels)
	for name, value := range map[string]string{tagPrefix + "team": c.Team, tagPrefix + "key": c.Key} {
		if value != "" {
			set[name] = value
		}
	}
	text, err := json.Marshal(set)
	if err != nil { // strings can always be encoded
		panic(err)
	}
	return string(text)
}

// service describes a kind of resource in the terms of the specification.
type service struct{ category, subcategory, name string }

func serviceOf(kind string) service {
	switch kind {
	case "network_volume":
		return service{"Storage", "File Storage", "Network volumes"}
	case "endpoint":
		return service{"Compute", "Serverless Compute", "Serverless"}
	case "job":
		return service{"AI and Machine Learning", "Other (AI and Machine Learning)", "Runs"}
	case "adjustment":
		return service{"Other", "Other (Other)", "Adjustments"}
	case "sandbox":
		return service{"Compute", "Containers", "Sandboxes"}
	case "cluster":
		return service{"Compute", "Containers", "Clusters"}
	}
	return service{"Compute", "Containers", "Pods"}
}

// WriteFOCUS writes costs by resource and owner as CSV with the columns of FOCUS 1.2, the FinOps open cost and usage specification. Amounts
// are in USD with six decimals. Each row has a single rate, and its priced and consumed quantities are hours at that rate.
func WriteFOCUS(w io.Writer, org string, rows []Cost) error {
	table := make([][]string, 1+len(rows))
	for i := range table {
		table[i] = make([]string, len(focusColumns))
		for j, c := range focusColumns {
			if table[i][j] = c.name; i > 0 {
				table[i][j] = c.value(org, &rows[i-1])
			}
		}
	}
	return adminapi.WriteCSV(w, table)
}
