package config_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config"
)

// A digest is text, with any first character: one in sixteen begins with a zero.
func TestDigestsNeedNoQuotes(t *testing.T) {
	const digest = "9a8831b396a1692b72f2ad528b9e05f95b768e04b2ce076c7339e7def010e6f"
	for _, first := range "0123456789abcdef" {
		text := strings.Join([]string{
			`platform: {base_url: "http://127.0.0.1:1"}`, "redis: {embedded: true}", "orgs:", "  - id: acme",
			"    credential: {env: ACME_KEY}", "    keys:", "      - {id: a, sha256: " + string(first) + digest + "}", "",
		}, "\n")
		if _, err := config.Parse("test.yaml", []byte(text), sources(t), nil); err != nil {
			t.Errorf("a digest that begins with %c: %v", first, err)
		}
	}
}
