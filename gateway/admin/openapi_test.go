package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// The document has the routes that the listener answers, all of them and no others,
// each with a summary, and asks for the token where the listener does.
func TestOpenAPI(t *testing.T) {
	d := deps("operators-only")
	rows := gateway.AdminRows()
	for i := range rows {
		if rows[i].Role == adminapi.Anyone {
			rows[i].HTTPHandler = func(http.ResponseWriter, *http.Request) {} // its own requires a gateway
		}
	}
	h := admin.New(d.Guard, rows)
	w := ask(h, "GET", "/admin/openapi.json", "192.0.2.1:1", "operators-only")
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Summary  string
			Security []any
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != http.StatusOK || doc.OpenAPI != "3.1.0" {
		t.Fatalf("the document: %d %.200s (%v)", w.Code, w.Body, err)
	}
	documented := make(map[string]bool)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			documented[strings.ToUpper(method)+" "+path] = true
			if op.Summary == "" {
				t.Errorf("%s %s has no summary", method, path)
			}
			r := httptest.NewRequest(strings.ToUpper(method), "http://127.0.0.1:8081"+strings.Replace(path, "{id}", "x", 1), http.NoBody)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if asked := w.Code == http.StatusUnauthorized; asked != (len(op.Security) > 0) || w.Code == http.StatusNotFound || w.Code == http.StatusMethodNotAllowed {
				t.Errorf("%s %s without the token: %d, and security %v", method, path, w.Code, op.Security)
			}
		}
	}
	answered := make(map[string]bool)
	for i := range rows {
		answered[rows[i].Pattern] = true
	}
	if diff := cmp.Diff(answered, documented); diff != "" {
		t.Errorf("documented, answered-, documented+:\n%s", diff)
	}
}
