package parity

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/translate"
)

// with puts lines in front of a door's configuration.
func with(lines string) option {
	return func(d *door) { d.text = lines + "\n" + d.text }
}

// Where the retired interfaces did not keep to their descriptions, the preset says
// which of both callers get.
func TestFaithfulAndStrictAnswers(t *testing.T) {
	for name, want := range map[string]struct {
		setting string
		stock   any
		status  int
	}{
		"by default": {"", nil, 500},
		"faithful":   {"legacy: {answers: faithful}", nil, 500},
		"strict":     {"legacy: {answers: strict}", "None", 400},
	} {
		t.Run(name, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				if err := d.platform.SetStock("NVIDIA L4", "", "", 0); err != nil {
					t.Fatal(err)
				}
				a := d.ask(t, graphql(`{ gpuTypes(input: {id: "NVIDIA L4"}) { lowestPrice(input: {gpuCount: 1}) { stockStatus } } }`))
				types := translate.Items(decoded(t, a), "data", "gpuTypes")
				if len(types) != 1 || translate.At(types[0], "lowestPrice", "stockStatus") != want.stock {
					t.Errorf("stock: %s, want %v", a.Body, want.stock)
				}
				a = d.ask(t, request("POST", "/v1/pods", "key_research", `{"imageName":"i","gpuTypeIds":["NVIDIA L4"]}`))
				if a.Status != want.status || !strings.Contains(a.Body, "no instances currently available") {
					t.Errorf("nothing free: %d %s, want %d", a.Status, a.Body, want.status)
				}
			}, with(want.setting))
		})
	}
}

// A brand is for both dialects. Without one each takes the caller's spelling, and
// remembers it for callers of the organisation who spell none.
func TestBrandsOfTemplates(t *testing.T) {
	t.Parallel()
	list := func(t *testing.T, d *door, brand string) (v1, gql any) {
		t.Helper()
		for _, item := range decoded(t, d.ask(t, request("GET", "/v1/templates?include"+brand+"Templates=true", "key_research", ""))).([]any) {
			v1 = translate.At(item, "is"+brand)
		}
		a := d.ask(t, graphql(`{ podTemplates(input: {is`+brand+`: true}) { is`+brand+` } }`))
		for _, item := range translate.Items(decoded(t, a), "data", "podTemplates") {
			gql = translate.At(item, "is"+brand)
		}
		return v1, gql
	}
	eachDoor(t, func(t *testing.T, d *door) {
		for _, brand := range []string{"Acme", "Globex"} {
			if v1, gql := list(t, d, brand); v1 != true || gql != true {
				t.Errorf("%s without a brand: v1 %v, GraphQL %v, want true", brand, v1, gql)
			}
		}
		if a := d.ask(t, graphql(`{ podTemplates(input: {isInitech: true}) { id } }`)); a.Status != 200 {
			t.Errorf("a third name: %d %s", a.Status, a.Body)
		}
		made := decoded(t, d.ask(t, request("POST", "/v1/templates", "key_platform", `{"name":"n","imageName":"i"}`)))
		for _, brand := range []string{"Acme", "Globex", "Initech"} {
			if got := translate.At(made, "is"+brand); got != false {
				t.Errorf("made with is%s %v, want false: %v", brand, got, made)
			}
		}
		if _, shown := translate.Members(made)["isPlatform"]; shown {
			t.Errorf("isPlatform is shown beside names that were seen: %v", made)
		}
		foreign := d.ask(t, request("POST", "/v1/templates", "key_globex", `{"name":"n","imageName":"i"}`))
		if got := translate.At(decoded(t, foreign), "isPlatform"); got != false {
			t.Errorf("another organisation: %s, want isPlatform", foreign.Body)
		}
	})
	eachDoor(t, func(t *testing.T, d *door) {
		if v1, gql := list(t, d, "Acme"); v1 != true || gql != true {
			t.Errorf("the brand: v1 %v, GraphQL %v, want true", v1, gql)
		}
		if v1, gql := list(t, d, "Globex"); v1 != nil || gql != nil {
			t.Errorf("another brand: v1 %v, GraphQL %v, want none", v1, gql)
		}
		made := d.ask(t, request("POST", "/v1/templates", "key_platform", `{"name":"n","imageName":"i"}`))
		if got := translate.At(decoded(t, made), "isAcme"); got != false {
			t.Errorf("made with isAcme %v, want false: %s", got, made.Body)
		}
	}, with("legacy: {brand: Acme}"))
}

// Answers that are whole say their length, however long: in chunks, each would be one
// write more.
func TestWholeAnswersSayTheirLength(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http")
	for _, raw := range []string{
		request("GET", "/v1/openapi.json", "", ""), request("GET", "/v1/pods", "key_research", ""), request("GET", "/v2/pods", "", ""),
		graphql(`{ __schema { types { name description } } }`),
	} {
		a := d.ask(t, raw)
		if got, want := a.Header["Content-Length"], strconv.Itoa(len(a.Body)); len(got) != 1 || got[0] != want {
			t.Errorf("%.40q: %d with Content-Length %q, want %s", raw, a.Status, got, want)
		}
	}
}
