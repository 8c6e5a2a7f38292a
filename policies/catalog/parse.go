package catalog

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// maxEntries limits the entries of a catalog response; the platform has about fifty types.
const maxEntries = 2000

// maxUnitPrice is the highest plausible hourly price of a GPU or vCPU. A higher list price is treated as unknown.
const maxUnitPrice Money = 1000 * microPerUSD

// ParseGPUs parses the decoded response to GET /v2/catalog/gpus. It ignores unknown members. If the response is not a catalog (the list is
// missing or empty, an entry has no ID, an ID occurs twice), it returns an error, so that the last valid list stays in use. An implausible
// price is treated as unknown, without an error.
func ParseGPUs(answer any) (out []GPU, err error) {
	err = eachEntry(answer, "gpus", func(id string, m map[string]any) {
		price, _ := m["price"].(map[string]any)
		limits, _ := m["maxCount"].(map[string]any)
		out = append(out, GPU{
			ID:           id,
			Name:         text(m["name"]),
			Pool:         text(m["pool"]),
			Manufacturer: text(m["manufacturer"]),
			MemoryGB:     integer(m["memory"]),
			Secure:       offer(m["secure"], limits["secure"], price["secure"]),
			Community:    offer(m["community"], limits["community"], price["community"]),
			Serverless:   unitPrice(price["serverless"]),
		})
	})
	return out, err
}

// ParseCPUs parses the decoded response to GET /v2/catalog/cpus, with the same rules as ParseGPUs.
func ParseCPUs(answer any) (out []CPU, err error) {
	err = eachEntry(answer, "cpus", func(id string, m map[string]any) {
		price, _ := m["price"].(map[string]any)
		vcpu, _ := m["vcpu"].(map[string]any)
		out = append(out, CPU{
			ID:         id,
			Name:       text(m["name"]),
			Group:      text(m["group"]),
			MinVCPU:    integer(vcpu["min"]),
			MaxVCPU:    integer(vcpu["max"]),
			Secure:     unitPrice(price["securePerVcpu"]),
			Serverless: unitPrice(price["serverlessPerVcpu"]),
		})
	})
	return out, err
}

// ParseTiers parses the decoded response to GET /v2/catalog/datacenters. For each data centre it returns the type of a network volume whose
// request does not name a type: the first type that the data centre offers, or "".
func ParseTiers(answer any) (map[string]string, error) {
	tiers := map[string]string{}
	err := eachEntry(answer, "dataCenters", func(id string, m map[string]any) {
		tiers[id] = ""
		if kinds, _ := m["networkVolumeTypes"].([]any); len(kinds) > 0 {
			tiers[id] = text(kinds[0])
		}
	})
	return tiers, err
}

// eachEntry calls visit for the entries of a list in a catalog response, in order, and stops at the first faulty entry.
func eachEntry(answer any, member string, visit func(id string, m map[string]any)) error {
	object, ok := answer.(map[string]any)
	if !ok {
		return errors.New("catalog response is not an object")
	}
	items, ok := object[member].([]any)
	switch {
	case !ok:
		return fmt.Errorf("catalog response does not contain the list %q", member)
	case len(items) == 0:
		return fmt.Errorf("list %q in the catalog response is empty", member)
	case len(items) > maxEntries:
		return fmt.Errorf("list %q in the catalog response has too many entries: %d", member, len(items))
	}
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		m, ok := item.(map[string]any)
		id := text(m["id"])
		switch {
		case !ok:
			return fmt.Errorf("%s[%d]: entry is not an object", member, i)
		case id == "":
			return fmt.Errorf("%s[%d]: entry does not have an id", member, i)
		case seen[id]:
			return fmt.Errorf("%s[%d]: duplicate id %q", member, i, id)
		}
		seen[id] = true
		visit(id, m)
	}
	return nil
}

func offer(offered, maxCount, price any) Offer {
	yes, _ := offered.(bool)
	return Offer{Offered: yes, MaxCount: integer(maxCount), Price: unitPrice(price)}
}

func unitPrice(v any) Price {
	m, err := moneyOf(v)
	if err != nil || m <= 0 || m > maxUnitPrice {
		return Price{}
	}
	return Price{Known: true, PerHour: m}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// integer reads a decoded JSON number that must be whole and non-negative. It returns 0, which means that the number is not given, for any
// other value.
func integer(v any) int64 {
	n, ok := operation.WholeNumber(v)
	if !ok || n < 0 {
		return 0
	}
	return n
}
