package platform_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// An emulator on a clock that stands still shows a pod in every state, and its
// bill, without waiting for anything.
func Example() {
	p, err := platform.New(platform.Options{
		Clock:    platform.ManualClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)),
		Accounts: []platform.Account{{ID: "me", Key: "my-key", Balance: 10}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = p.Close() }()
	ask := func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer my-key")
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w
	}

	p.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultCapacity, Times: 1})
	const pod = `{"name":"a","image":"alpine:3","gpu":{"id":"NVIDIA L4"}}`
	fmt.Println(ask(http.MethodPost, "/v2/pods", pod).Code)
	fmt.Println(ask(http.MethodPost, "/v2/pods", pod).Code)

	for _, wait := range []time.Duration{0, 2 * time.Second, 2 * time.Second} {
		p.Clock().Advance(wait)
		_, after, _ := strings.Cut(ask(http.MethodGet, "/v2/pods", "").Body.String(), `"status":"`)
		status, _, _ := strings.Cut(after, `"`)
		fmt.Println(status)
	}
	p.Clock().Advance(time.Hour)
	left, perHour, err := p.Balance("me")
	fmt.Printf("%.2f left, %.2f per hour, %v\n", left, perHour, err)
	// Output:
	// 400
	// 201
	// PROVISIONING
	// STARTING
	// RUNNING
	// 9.57 left, 0.43 per hour, <nil>
}
