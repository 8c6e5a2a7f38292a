package fault_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config/fault"
)

func TestNearest(t *testing.T) {
	names := []string{"gpu", "image", "name", "templateId", "data_centers", "network-volume", "research", "ops"}
	for written, want := range map[string]string{
		"gpus": "gpu", "GPU": "gpu", "imgae": "image", "iamge": "image", "template_id": "templateId", "templateIdd": "templateId", "dataCenters": "data_centers",
		"networkvolum": "network-volume", "researhc": "research", "Research": "research", "opps": "ops", "finance": "", "bogus": "", "": "", "x": "", strings.Repeat("image", 20): "",
	} {
		if got := fault.Nearest(written, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", written, got, want)
		}
	}
}

func TestAbbreviates(t *testing.T) {
	names := []string{"NVIDIA L4", "NVIDIA L40S", "NVIDIA A100-SXM4-80GB A100 SXM", "NVIDIA A100 80GB PCIe", "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3 H100 SXM", "ADA_24"}
	for written, want := range map[string][]int{
		"L4": {0}, "nvidia l4": {0}, "NVIDIA-L4": {0}, "L40S": {1}, "4090": {4}, "RTX 4090": {4}, "rtx4090": {4}, "4090 RTX": {4}, "H100 SXM": {5}, "A100": {3, 2},
		"80GB": {3, 2, 5}, "ada24": {6},
		"L": nil, "L5": nil, "NVIDIA": nil, "NVIDIA L5": nil, "": nil, "-4-": nil, "NVIDIA L4 Ti": nil, "4 L": nil,
	} {
		if got := fault.Abbreviates(written, names); !slices.Equal(got, want) {
			t.Errorf("Abbreviates(%q) = %v, want %v", written, got, want)
		}
	}
}
