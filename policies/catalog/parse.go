package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// maxEntries bounds a catalog answer; the platform has some fifty types.
const maxEntries = 2000

// maxUnitPrice is what no GPU or vCPU hour costs; above it a list price is
// taken for a mistake, hence unknown.
const maxUnitPrice Money = 1000 * microPerUSD

// ParseGPUs reads the decoded answer of GET /v2/catalog/gpus. Members it does
// not know are ignored. An answer that cannot be a catalog (no list, an empty
// one, an entry without id, one id twice) is an error, so that the last good
// list stays; a price that cannot be right makes only that price unknown.
func ParseGPUs(answer any) ([]GPU, error) {
	items, err := list(answer, "gpus")
	if err != nil {
		return nil, err
	}
	out := make([]GPU, 0, len(items))
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		m, id, err := entry(item, seen)
		if err != nil {
			return nil, fmt.Errorf("gpus[%d]: %w", i, err)
		}
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
	}
	return out, nil
}

// ParseCPUs reads the decoded answer of GET /v2/catalog/cpus, by the rules of
// ParseGPUs.
func ParseCPUs(answer any) ([]CPU, error) {
	items, err := list(answer, "cpus")
	if err != nil {
		return nil, err
	}
	out := make([]CPU, 0, len(items))
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		m, id, err := entry(item, seen)
		if err != nil {
			return nil, fmt.Errorf("cpus[%d]: %w", i, err)
		}
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
	}
	return out, nil
}

// ParseTiers reads which kind of network volume a data centre makes when a request
// names none, the first it offers or "", from the decoded answer of GET
// /v2/catalog/datacenters.
func ParseTiers(answer any) (map[string]string, error) {
	items, err := list(answer, "dataCenters")
	if err != nil {
		return nil, err
	}
	tiers := make(map[string]string, len(items))
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		m, id, err := entry(item, seen)
		if err != nil {
			return nil, fmt.Errorf("dataCenters[%d]: %w", i, err)
		}
		tiers[id] = ""
		if kinds, _ := m["networkVolumeTypes"].([]any); len(kinds) > 0 {
			tiers[id] = text(kinds[0])
		}
	}
	return tiers, nil
}

func list(answer any, member string) ([]any, error) {
	m, ok := answer.(map[string]any)
	if !ok {
		return nil, errors.New("the catalog answer is not an object")
	}
	items, ok := m[member].([]any)
	switch {
	case !ok:
		return nil, fmt.Errorf("the catalog answer has no list %q", member)
	case len(items) == 0:
		return nil, fmt.Errorf("the catalog answer has an empty list %q", member)
	case len(items) > maxEntries:
		return nil, fmt.Errorf("the catalog answer has %d entries in %q", len(items), member)
	}
	return items, nil
}

func entry(item any, seen map[string]bool) (map[string]any, string, error) {
	m, ok := item.(map[string]any)
	if !ok {
		return nil, "", errors.New("not an object")
	}
	id, ok := m["id"].(string)
	if !ok || id == "" {
		return nil, "", errors.New("no id")
	}
	if seen[id] {
		return nil, "", fmt.Errorf("%q is listed twice", id)
	}
	seen[id] = true
	return m, id, nil
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

// integer reads a decoded JSON number that must be a whole, non-negative one;
// anything else is 0, "not said".
func integer(v any) int64 {
	n, ok := whole(v)
	if !ok || n < 0 {
		return 0
	}
	return n
}

// whole reads a decoded JSON number as an int64; ok is false for anything that
// is not a whole number in range.
func whole(v any) (n int64, ok bool) {
	switch x := v.(type) {
	case json.Number:
		n, err := strconv.ParseInt(x.String(), 10, 64)
		return n, err == nil
	case float64:
		n := int64(x)
		return n, float64(n) == x && x > -1<<53 && x < 1<<53
	case int:
		return int64(x), true
	case int64:
		return x, true
	default:
		return 0, false
	}
}
