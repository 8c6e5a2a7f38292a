package redisstore

import (
	"context"
	"fmt"
	"strings"
)

// DurabilityRisks returns the reasons why Redis may lose a ledger: it does not write changes to disk, or it evicts keys. It returns an
// error if Redis does not report its settings.
func (s *Store) DurabilityRisks(ctx context.Context) ([]string, error) {
	info := make(map[string]string)
	for _, section := range []string{"persistence", "memory"} {
		text, err := s.client.Info(ctx, section).Result()
		if err != nil {
			return nil, fmt.Errorf("check durability: %w", err)
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[name] = value
			}
		}
	}
	var risks []string
	if info["aof_enabled"] == "0" {
		risks = append(risks, "Redis does not write every change to disk: set appendonly to yes")
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		risks = append(risks, "Redis may evict keys: set maxmemory-policy to noeviction instead of "+policy)
	}
	return risks, nil
}

// LegacyLedgers returns the organisations that have a ledger of an older, unsupported format under prefix.
func (s *Store) LegacyLedgers(ctx context.Context, prefix string, orgs []string) (found []string, err error) {
	for _, org := range orgs {
		n, err := s.client.Exists(ctx, prefix+"{"+org+"}:accounts").Result()
		if err != nil {
			return nil, fmt.Errorf("check for earlier ledgers: %w", err)
		}
		if n > 0 {
			found = append(found, org)
		}
	}
	return found, nil
}
