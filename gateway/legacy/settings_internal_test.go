package legacy

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// The tests of the dialects run with the defaults of the gateway, and each setting reaches its dialect.
func TestSettingsReachTheDialects(t *testing.T) {
	cfg := settings.Default()
	rest, gql := configs(&cfg)
	if diff := cmp.Diff(v1.DefaultConfig(), rest); diff != "" {
		t.Errorf("defaults of v1 (-dialect +settings):\n%s", diff)
	}
	if diff := cmp.Diff(graphql.DefaultConfig(), gql); diff != "" {
		t.Errorf("defaults of GraphQL (-dialect +settings):\n%s", diff)
	}
	cfg.V1, cfg.GraphQL = settings.V1{Budget: 3, VolumeBudget: 2}, settings.GraphQL{CreateTimeout: 5, Timeout: 4}
	cfg.Legacy.Answers, cfg.Legacy.Brand, cfg.Legacy.Sunset, cfg.Legacy.Host = "strict", "Globex", "2027-03-01", "rest.acme.io"
	rest, gql = configs(&cfg)
	shared := rest.Legacy
	if rest.Budget != 3 || rest.VolumeBudget != 2 || gql.Introspection || gql.CreateTimeout != 5 || gql.Timeout != 4 || gql.Legacy != shared {
		t.Errorf("v1 %+v, GraphQL %+v", rest, gql)
	}
	if shared.Answers != "strict" || shared.Brand != "Globex" || shared.Derived != "Acme" || shared.Sunset != "2027-03-01" || shared.Deprecated != "2026-11-15" {
		t.Errorf("both %+v", shared)
	}
}

// The page that operators read lists every setting of v1 with its default.
func TestThePageHasTheSettingsOfV1(t *testing.T) {
	page, err := os.ReadFile("../../docs/v1.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults := reflect.ValueOf(settings.Default().V1)
	for i := range defaults.NumField() {
		d, ok := reflect.TypeAssert[time.Duration](defaults.Field(i))
		row := fmt.Sprintf("`%s` (%ds)", defaults.Type().Field(i).Tag.Get("yaml"), int(d.Seconds()))
		if !ok || !strings.Contains(string(page), row) {
			t.Errorf("docs/v1.md lacks a setting with its default: %q", row)
		}
	}
}
