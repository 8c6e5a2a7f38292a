package filter

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// JSONResponse returns a 200 response with v as its JSON body, which must not be cached.
func JSONResponse(v any) (*Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	return &Response{
		Status: http.StatusOK, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}},
	}, nil
}
