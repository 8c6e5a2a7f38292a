package envoy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Render returns the resources of a snapshot as indented JSON. The keys of the map contain the type and the name of the resource. Private
// keys and the credentials for the trace receiver are masked.
func Render(snapshot cache.ResourceSnapshot) (map[string]string, error) {
	out := make(map[string]string)
	for i := range types.UnknownType {
		typeURL, err := cache.GetResponseTypeURL(i)
		if err != nil {
			return nil, err
		}
		for name, r := range snapshot.GetResources(typeURL) {
			if secret, ok := r.(*tlsv3.Secret); ok {
				shown := proto.CloneOf(secret)
				shown.GetTlsCertificate().PrivateKey = nil
				r = shown
			}
			text, err := indented(r)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", short(typeURL), name, err)
			}
			out[short(typeURL)+" "+name] = headers.ReplaceAllStringFunc(text, func(list string) string {
				return value.ReplaceAllString(list, `"value": "left out"`)
			})
		}
	}
	return out, nil
}

// Patterns that match, in indented JSON, the headers for the trace receiver and the value of one header. Strings in JSON contain no line
// breaks.
var (
	headers = regexp.MustCompile(`(?s)"request_headers_to_add": \[.*?\n\s*\]`)
	value   = regexp.MustCompile(`"value": "(?:[^"\\]|\\.)*"`)
)

// indented formats a message as JSON. Equal messages result in equal texts, which protojson does not guarantee.
func indented(m proto.Message) (string, error) {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return "", err
	}
	return out.String() + "\n", nil
}
