package parity

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/translate"
)

// keyless asks by GraphQL without a key.
func keyless(t *testing.T, d *door, document string) answer {
	t.Helper()
	return d.ask(t, request("POST", "/graphql", "", fmt.Sprintf(`{"query":%q}`, document)))
}

// catalogKept is longer than any answer of the catalog is kept.
const catalogKept = 6 * time.Minute

const offers = `{ gpuTypes { id lowestPrice(input: {gpuCount: %d, secureCloud: false, countryCode: %q}) { stockStatus } } }`

// Questions without a key have a limit of their own, which only answered ones count
// towards and which has nothing to do with failed attempts.
func TestKeylessQuestionsAreLimitedByThemselves(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for range 3 {
			for _, refused := range []string{`{ pod(input: {podId: "x"}) { id } }`, `{ nonsense }`} {
				if a := keyless(t, d, refused); a.Status != 401 && a.Status != 400 {
					t.Fatalf("%s: %d %s, want 401 or 400", refused, a.Status, a.Body)
				}
			}
			d.platform.AddFault(platform.Fault{Operation: "listDataCenters", Kind: platform.FaultStatus, Status: 500})
			if a := keyless(t, d, `{ dataCenters { id } }`); !strings.Contains(a.Body, "errors") {
				t.Fatalf("while the platform fails: %d %s", a.Status, a.Body)
			}
			d.platform.ClearFaults()
			d.advance(time.Minute)
		}
		for i := range 3 {
			if a := keyless(t, d, `{ gpuTypes { id } }`); a.Status != 200 {
				t.Fatalf("question %d: %d %s", i+1, a.Status, a.Body)
			}
		}
		a := keyless(t, d, `{ gpuTypes { id } }`)
		if a.Status != 429 || a.Header.Get("Retry-After") != "60" {
			t.Errorf("question 4: %d, Retry-After %q, want 429 after 60 s: %s", a.Status, a.Header.Get("Retry-After"), a.Body)
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_guess", "")); a.Status != 401 {
			t.Errorf("a wrong key: %d, want 401", a.Status)
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_research", "")); a.Status != 200 {
			t.Errorf("a caller at the address: %d, want 200", a.Status)
		}
		d.advance(time.Minute)
		if a := keyless(t, d, `{ gpuTypes { id } }`); a.Status != 200 {
			t.Errorf("a minute later: %d, want 200", a.Status)
		}
	}, with("legacy: {keyless: {org: acme, limit: {rate: 1, burst: 3}}}"))
}

// On defaults nothing is answered without a key but that v2 has no hub: a client that asks
// it without one must not tell its user that the key is wrong.
func TestQuestionsAboutTheHubNeedNoKey(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		before := len(d.platform.Calls())
		for _, document := range []string{`{ listings(input: {}) { id } }`, `query a { listing(id: "x") { id } listings(input: {}) { id } }`, `{ allAiApiPublicConfigs { id } }`} {
			if a := keyless(t, d, document); a.Status != 200 || !strings.Contains(a.Body, "NOT_SUPPORTED") || strings.Contains(a.Body, "Unauthorized") {
				t.Errorf("%s: %d %s, want 200 and NOT_SUPPORTED", document, a.Status, a.Body)
			}
		}
		for _, document := range []string{
			`{ gpuTypes { id } }`, `{ myself { id } }`, `{ countryCodes }`, `{ __typename }`, `{ __schema { queryType { name } } }`, `{ nonsense }`, `{`,
			`{ listings(input: {}) { id } gpuTypes { id } }`, `{ listings(input: {}) { id } myself { id } }`, `{ listings(input: {}) { id } __typename }`, `{ myModels { id } }`,
			`mutation { secretCreate(input: {value: "v", name: "n"}) { id } }`, `mutation { podTerminate(input: {podId: "x"}) }`,
		} {
			if a := keyless(t, d, document); a.Status != 401 || !strings.Contains(a.Body, "Unauthorized") || a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %d %s, want 401", document, a.Status, a.Body)
			}
		}
		if a := d.ask(t, request("POST", "/graphql", "key_guess", `{"query":"{ listings(input: {}) { id } }"}`)); a.Status != 401 {
			t.Errorf("with a wrong key: %d %s, want 401", a.Status, a.Body)
		}
		for i := range 1000 {
			if a := keyless(t, d, `{ listings(input: {}) { id } }`); a.Status == 429 {
				break
			} else if i == 999 {
				t.Error("1000 questions without a key passed, want 429 before")
			}
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_research", "")); a.Status != 200 || len(d.platform.Calls()) != before+1 {
			t.Errorf("a caller at the address: %d, want 200; the platform was asked %d times, want once", a.Status, len(d.platform.Calls())-before)
		}
	})
}

// Whoever asks and how often: a different question makes one call of the platform in
// 30 seconds, also while that fails.
func TestKeylessQuestionsMakeOneCallEach(t *testing.T) {
	eachDoor(t, func(t *testing.T, d *door) {
		crowd := func() {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { keyless(t, d, fmt.Sprintf(offers, 1, "RO")) })
			}
			wg.Wait()
		}
		calls := func() string {
			var b strings.Builder
			for _, op := range []string{"listGpuTypes", "listDataCenters"} {
				fmt.Fprintf(&b, "%s %d ", op, len(d.platform.CallsTo(op)))
			}
			return b.String()
		}
		crowd() // the types, those in the country, and which countries there are
		if got, want := calls(), "listGpuTypes 2 listDataCenters 1 "; got != want {
			t.Errorf("at once: %s, want %s", got, want)
		}
		d.advance(29 * time.Second)
		crowd()
		if got, want := calls(), "listGpuTypes 2 listDataCenters 1 "; got != want {
			t.Errorf("29 s later: %s, want %s", got, want)
		}
		d.advance(2 * time.Second)
		crowd()
		if got, want := calls(), "listGpuTypes 4 listDataCenters 1 "; got != want {
			t.Errorf("31 s later: %s, want %s", got, want)
		}
		d.platform.AddFault(platform.Fault{Operation: "listCpuTypes", Kind: platform.FaultStatus, Status: 500})
		for range 3 {
			keyless(t, d, `{ cpuFlavors { id } }`)
			d.advance(9 * time.Second)
		}
		if n := len(d.platform.CallsTo("listCpuTypes")); n != 1 {
			t.Errorf("%d calls while they fail, want 1", n)
		}
	}, with("legacy: {keyless: {org: acme}}"))
}

// Only countries of the catalog make calls.
func TestKeylessQuestionsAboutCountries(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		keyless(t, d, fmt.Sprintf(offers, 1, "RO"))
		before := len(d.platform.Calls())
		for i := range 30 {
			a := keyless(t, d, fmt.Sprintf(offers, 1, fmt.Sprintf("X%c", 'A'+i%26)))
			for _, g := range translate.Items(decoded(t, a), "data", "gpuTypes") {
				if stock := translate.At(g, "lowestPrice", "stockStatus"); stock != nil {
					t.Errorf("%v in a country that is none", stock)
				}
			}
		}
		if n := len(d.platform.Calls()) - before; n != 0 {
			t.Errorf("%d calls of the platform, want none", n)
		}
	}, with("legacy: {keyless: {org: acme}}"))
}

// A 401 names the scheme that it asks for (RFC 9110, section 15.5.2), and whether the key is missing or unknown, in every dialect.
func TestUnauthorizedSaysHow(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		const pods = `{"query":"{ myself { pods { id } } pod(input: {podId: \"x\"}) { id } }"}`
		for key, says := range map[string]string{"": "missing key: send it in the header Authorization: Bearer KEY", "key_guess": "unknown key"} {
			for _, r := range []string{
				request("GET", "/v2/pods", key, ""), request("GET", "/v1/pods", key, ""), request("POST", "/graphql", key, pods),
			} {
				if a := d.ask(t, r); a.Status != 401 || a.Header.Get("WWW-Authenticate") != "Bearer" || !strings.Contains(a.Body, says) {
					t.Errorf("%.20s with key %q: %d, WWW-Authenticate %q, %s; want 401, Bearer, %q", r, key, a.Status, a.Header.Get("WWW-Authenticate"), a.Body, says)
				}
			}
		}
	}, with("legacy: {keyless: {org: acme}}"))
}

// A question about the hub without a key is not available, which is no matter of keys: a client
// that reads 401 tells its user that the key is wrong.
func TestHubQuestionsWithoutAKey(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for document, want := range map[string]string{
			`{ listings(input: {}) { id } }`:                "NOT_SUPPORTED",
			`{ listing(input: {id: "x"}) { id } }`:          "NOT_SUPPORTED",
			`{ podRentInterruptable(input: {}) { id } }`:    "UNAUTHENTICATED",
			`mutation { createFlashApp(input: {}) { id } }`: "UNAUTHENTICATED",
		} {
			a := keyless(t, d, document)
			if !strings.Contains(a.Body, `"`+want+`"`) || (a.Status == 401) != (want == "UNAUTHENTICATED") {
				t.Errorf("%s: %d %s, want %s", document, a.Status, a.Body, want)
			}
		}
	}, with("legacy: {keyless: {org: acme}}"))
}
