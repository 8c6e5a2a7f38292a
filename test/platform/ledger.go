package platform

import "time"

// amounts is money by what it was spent on, in USD or USD per hour.
type amounts [14]float64

// The components of amounts, in the order of the aggregated billing history.
const (
	podGPUAmount = iota
	podCPUAmount
	podDiskAmount
	serverlessGPUAmount
	serverlessCPUAmount
	serverlessDiskAmount
	serverlessFeeAmount
	volumeStandardAmount
	volumeHighAmount
	publicEndpointAmount
	clusterGPUAmount
	clusterDiskAmount
	clusterNetworkAmount
	sandboxAmount // in no billing list
)

// billed says for each component in which billing list it is, and under which name: in the aggregated
// history, and in the list of its kind of meter, where an empty name counts to the total only.
var billed = [...]struct{ kind, name, own string }{
	podGPUAmount:         {meterPod, "podGpuAmount", "gpuAmount"},
	podCPUAmount:         {meterPod, "podCpuAmount", "cpuAmount"},
	podDiskAmount:        {meterPod, "podDiskAmount", "diskAmount"},
	serverlessGPUAmount:  {meterServerless, "serverlessGpuAmount", "gpuAmount"},
	serverlessCPUAmount:  {meterServerless, "serverlessCpuAmount", "cpuAmount"},
	serverlessDiskAmount: {meterServerless, "serverlessDiskAmount", "diskAmount"},
	serverlessFeeAmount:  {meterServerless, "serverlessFeeAmount", "feeAmount"},
	volumeStandardAmount: {meterVolume, "storageStandardAmount", "standardAmount"},
	volumeHighAmount:     {meterVolume, "storageHighPerformanceAmount", "highPerformanceAmount"},
	publicEndpointAmount: {meterPublic, "endpointAmount", ""},
	clusterGPUAmount:     {meterCluster, "clusterGpuAmount", "gpuAmount"},
	clusterDiskAmount:    {meterCluster, "clusterDiskAmount", "diskAmount"},
	clusterNetworkAmount: {meterCluster, "clusterNetworkingAmount", "networkingAmount"},
}

// Prices that are in no catalog, in USD per hour. A month is 730 hours.
const (
	hoursPerMonth      = 730
	containerDiskHour  = 0.10 / hoursPerMonth // per GB, while running
	persistentUpHour   = 0.10 / hoursPerMonth // per GB
	persistentDownHour = 0.20 / hoursPerMonth // per GB, while the pod is stopped
)

func (a amounts) total() float64 {
	sum := 0.0
	for _, one := range a {
		sum += one
	}
	return sum
}

func (a *amounts) add(b amounts, times float64) {
	for i := range a {
		a[i] += b[i] * times
	}
}

// meter is everything one resource was ever charged for. It outlives the
// resource, as the billing history does.
type meter struct {
	Kind, ID string
	Spans    []span
	Lumps    []lump
}

// span is a time over which a rate was charged; To is zero while it lasts.
type span struct {
	From, To time.Time
	Rate     amounts
}

// end is when the span ends, or now.
func (s span) end(now time.Time) time.Time {
	if s.To.IsZero() {
		return now
	}
	return s.To
}

// lump is money spent at once.
type lump struct {
	At     time.Time
	Amount amounts
}

// The kinds of meter.
const (
	meterPod        = "pod"
	meterServerless = "serverless"
	meterVolume     = "network-volume"
	meterCluster    = "cluster"
	meterPublic     = "public-endpoint"
	meterSandbox    = "sandbox"
)

func (a *account) meter(kind, id string) *meter {
	key := kind + "/" + id
	m := a.meters.get(key)
	if m == nil {
		m = &meter{Kind: kind, ID: id}
		a.meters.add(key, m)
	}
	return m
}

// chargeLocked makes a resource cost rate from now on, now being an instant the
// funds is settled at.
func (a *account) chargeLocked(kind, id string, rate amounts, now time.Time) {
	a.funds.settle(now)
	m := a.meter(kind, id)
	before := 0.0
	if n := len(m.Spans); n > 0 && m.Spans[n-1].To.IsZero() {
		open := &m.Spans[n-1]
		if open.Rate == rate {
			return
		}
		before = open.Rate.total()
		open.To = now
		if !open.To.After(open.From) {
			m.Spans = m.Spans[:n-1]
		}
	}
	a.meters.touch(m.Kind + "/" + m.ID)
	after := rate.total()
	if after > 0 {
		m.Spans = append(m.Spans, span{From: now, Rate: rate})
	}
	a.funds.charge(after - before)
}

// spendLocked takes a lump sum for a resource.
func (a *account) spendLocked(kind, id string, amount amounts, now time.Time) {
	m := a.meter(kind, id)
	m.Lumps = append(m.Lumps, lump{At: now, Amount: amount})
	a.meters.touch(kind + "/" + id)
	a.funds.spend(amount.total())
}
