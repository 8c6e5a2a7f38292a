package strictjson_test

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

func ExampleDecode() {
	body := []byte("{\n  \"gpu\": {\"id\": \"NVIDIA A40\"},\n  \"gpu\": {\"id\": \"NVIDIA H200\"}\n}")
	_, err := strictjson.Decode(body, strictjson.DefaultLimits())
	if e, ok := errors.AsType[*strictjson.SyntaxError](err); ok {
		fmt.Println(e.Code)
	}
	fmt.Println(err)
	// Output:
	// duplicate_name
	// duplicate member name "gpu" (line 3, column 3)
}

func ExampleAppend() {
	v, err := strictjson.Decode([]byte(`{ "b": 1.50, "a": "<\u0041>" }`), strictjson.DefaultLimits())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := strictjson.Append(nil, v)
	fmt.Println(string(out), err)
	// Output: {"a":"<A>","b":1.50} <nil>
}
