package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// Over TLS a browser takes the cookies of both consoles, whose ports share its cookies: a login at one console keeps the session at the other.
func TestConsolesOfOneHostOverTLS(t *testing.T) {
	p := platform.RunT(t)
	cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`"}
redis: {embedded: true}
admin: {admins: [{name: root, sha256: SHA256(token_root), roles: [admin]}]}
orgs:
  - id: acme
    credential: {env: KEY}
    keys: [{id: ann, sha256: SHA256(key_of_ann), limits: {minute: 600}}]
`, map[string]string{"KEY": platform.DefaultKey})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
	serve := func(h http.Handler) string {
		s := httptest.NewTLSServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	operators, callers := serve(g.AdminHandler())+"/ui/", serve(g.Handler())+"/tollgate/ui/"
	b := openTab(t)
	b.do(t, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
		return err
	}))
	for _, login := range []struct{ page, token string }{{operators, "token_root"}, {callers, "key_of_ann"}} {
		b.do(t, chromedp.Navigate(login.page))
		b.until(t, `location.pathname.endsWith("/login") && document.querySelector("#token") !== null`)
		b.do(t, chromedp.SendKeys(chromedp.CSS("#token"), login.token+"\r"))
		b.until(t, `document.querySelector("nav") !== null && location.href === "`+login.page+`" && document.cookie === ""`)
	}
	b.do(t, chromedp.Navigate(operators))
	b.until(t, `document.querySelector("nav") !== null && document.body.innerText.includes("root")`)
}
