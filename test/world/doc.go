// Package world is what tests of the whole gateway stand on: a gateway made of a
// configuration's text, with telemetry of its own; the store it counts in; the raw
// requests of callers and the answers to them.
//
//	cfg := world.Configuration(t, text, map[string]string{"ACME": credential})
//	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
//	s := httptest.NewServer(g.Handler())
//	t.Cleanup(s.Close)
//	answer := world.Ask(t, s.Listener.Addr().String(), world.Request("GET", "/v2/pods", "key_a", ""))
//
// It knows neither a platform nor a case: those are the tests' own. Its programs end with
// the test, and its bounds are there only to end a test that hangs.
package world
