package graphql

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// beginning is a time before the first charge of the platform.
const beginning = "2020-01-01T00:00:00Z"

// Fields of a v2 account billing record that add up to each charge in GraphQL. Together they cover all fields.
var (
	gpuAmounts        = []string{"podGpuAmount", "clusterGpuAmount", "clusterNetworkingAmount"}
	cpuAmounts        = []string{"podCpuAmount"}
	serverlessAmounts = []string{"serverlessGpuAmount", "serverlessCpuAmount", "serverlessFeeAmount"}
	networkAmounts    = []string{"storageStandardAmount", "storageHighPerformanceAmount"}
	storageAmounts    = append([]string{"podDiskAmount", "serverlessDiskAmount", "clusterDiskAmount"}, networkAmounts...)
)

// billed is User.billing with a granularity.
type billed struct{ granularity string }

// bucket returns the v2 name of the granularity.
func (b billed) bucket(x *exchange) string {
	if b.granularity == "MINUTELY" {
		x.WarnLost("granularity", "v2 does not support intervals below one hour")
	}
	names := map[string]string{"MINUTELY": "hour", "HOURLY": "hour", "WEEKLY": "week", "MONTHLY": "month"}
	return cmp.Or(names[b.granularity], "day")
}

// bills returns billing records as maps.
func (x *exchange) bills(ctx context.Context, operation string, query url.Values) ([]any, error) {
	list, err := x.List(ctx, legacy.Purpose{Verb: "billing", Noun: legacy.NounAccount}, operation, "records", query)
	return records(list), err
}

// spendField adapts a resolver of a cost field. If the caller may not read costs, the field is null with a warning, and the other fields of
// the document are resolved.
func spendField[T any](f func(ctx context.Context, x *exchange, source T, in input) (any, error)) resolver {
	return field(func(ctx context.Context, x *exchange, source T, in input) (any, error) {
		v, err := f(ctx, x, source, in)
		if isStatus(err, http.StatusForbidden) {
			x.Warn("spending", asFault(err).message)
			return nil, nil
		}
		return v, err
	})
}

// podRates returns the sum of the hourly rates of the account's pods, filtered by f.
func (x *exchange) podRates(ctx context.Context, f func(pod any) bool) (any, error) {
	pods, err := x.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	sum := 0.0
	for _, p := range pods {
		if f(p) {
			sum += number(p, "cost")
		}
	}
	return total(sum, 1), nil
}

func lifetimeSpend(ctx context.Context, x *exchange, _ *user, _ input) (any, error) {
	list, err := x.bills(ctx, "listBilling", url.Values{"bucketSize": {"year"}, "startTime": {beginning}})
	if err != nil {
		return nil, err
	}
	sum := 0.0
	for _, r := range list {
		sum += number(r, "totalAmount")
	}
	return total(sum, 1), nil
}

func dailyCharges(ctx context.Context, x *exchange, _ *user, _ input) (any, error) {
	list, err := x.bills(ctx, "listBilling", url.Values{"bucketSize": {"day"}})
	return list, err
}

// amount returns a resolver for the sum of fields of a billing record.
func amount(names ...string) resolver {
	return get(func(r map[string]any) any {
		sum := 0.0
		for _, name := range names {
			sum += number(r, name)
		}
		return total(sum, 1)
	})
}

func billingTypes(c legacy.Config) map[string]objectType {
	bills := func(operation string) resolver {
		return spendField(func(ctx context.Context, x *exchange, b billed, in input) (any, error) {
			if in.object("input").text("groupBy") == "GPU_TYPE" {
				x.WarnLost("groupBy", "v2 bills endpoints, not GPU types")
			}
			list, err := x.bills(ctx, operation, url.Values{"bucketSize": {b.bucket(x)}})
			return list, err
		})
	}
	start := get(func(r map[string]any) any { return instant(translate.Text(r, "startTime")) })
	return map[string]objectType{
		"SpendDetails": {"gpuComputePerHour": spendField(func(ctx context.Context, x *exchange, _ *user, _ input) (any, error) {
			return x.podRates(ctx, func(pod any) bool { return translate.Text(pod, "gpu", "id") != "" })
		})},
		"ClientCreditCharge": {
			"updatedAt": start, "amount": amount("totalAmount"), "podCharges": amount(append(gpuAmounts, cpuAmounts...)...),
			"diskCharges": amount(storageAmounts...), "serverlessCharges": amount(serverlessAmounts...), "apiCharges": amount("endpointAmount"),
		},
		"UserBilling": {
			"summary": bills("listBilling"), "cpuCloud": bills("listBilling"), "storage": bills("listBilling"),
			c.LowerName() + "Endpoint": bills("listBilling"), "serverless": bills("listServerlessBilling"), "gpuCloud": spendField(gpuBills),
		},
		"SummaryBilling": {
			"time": start, "gpuCloudAmount": amount(gpuAmounts...), "cpuCloudAmount": amount(cpuAmounts...),
			"serverlessAmount": amount(serverlessAmounts...), "storageAmount": amount(storageAmounts...),
			c.LowerName() + "EndpointAmount": amount("endpointAmount"),
		},
		"CpuCloudBilling":       {"time": start, "amount": amount(cpuAmounts...)},
		"PublicEndpointBilling": {"time": start, "amount": amount("endpointAmount")},
		"ServerlessBilling": {
			"time": start, "amount": amount("totalAmount"),
			"endpointId": get(func(r map[string]any) any { return translate.Text(r, "serverlessId") }),
		},
		"StorageBilling": {
			"time": start, "amount": amount(storageAmounts...),
			"networkStorageAmount": amount(networkAmounts...), "slsStorageAmount": amount("serverlessDiskAmount"),
		},
		"GpuCloudBilling": {
			"time":      get(func(b *gpuBill) any { return instant(b.time) }),
			"amount":    get(func(b *gpuBill) any { return total(b.amount, 1) }),
			"gpuTypeId": get(func(b *gpuBill) any { return b.gpu }),
		},
	}
}

// gpuBill is the cost of the pods of one GPU type in one bucket.
type gpuBill struct {
	time, gpu string
	amount    float64
}

func gpuBills(ctx context.Context, x *exchange, b billed, _ input) (any, error) {
	list, err := x.bills(ctx, "listPodBilling", url.Values{"bucketSize": {b.bucket(x)}})
	if err != nil {
		return nil, err
	}
	sums, typeOf := map[[2]string]*gpuBill{}, x.PodGPUTypes(ctx, list)
	var order []*gpuBill
	for _, r := range list {
		gpu := typeOf(translate.Text(r, "podId"))
		if gpu == legacy.CPUType {
			continue
		}
		key := [2]string{translate.Text(r, "startTime"), gpu}
		if sums[key] == nil {
			sums[key] = &gpuBill{time: key[0], gpu: gpu}
			order = append(order, sums[key])
		}
		sums[key].amount += number(r, "gpuAmount")
	}
	slices.SortStableFunc(order, func(a, b *gpuBill) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.gpu, b.gpu)) })
	return translate.List(order), nil
}
