package platform

import "cmp"

// DefaultCatalog returns a new copy of what the emulator rents unless told
// otherwise. Identifiers, memory sizes and pools are the platform's; prices are
// plausible ones of the same order, and nothing to plan a budget with.
func DefaultCatalog() *Catalog {
	c := &Catalog{CPUs: defaultCPUs(), DataCenters: defaultDataCenters(), Templates: defaultTemplates()}
	for i, g := range defaultGPUs() {
		g.DataCenters = spread(c.DataCenters, i, g.reach())
		c.GPUs = append(c.GPUs, g.completed())
	}
	for i := range c.CPUs {
		c.CPUs[i].MinVCPU, c.CPUs[i].MaxVCPU = 2, 32
		c.CPUs[i].DataCenters = spread(c.DataCenters, 1, 10) // EU-RO-1 is the first of them
	}
	return c
}

// completed adds what most types have in common: how many cards a pod can have on the clouds
// that offer the type, and the CUDA versions.
func (g GPU) completed() GPU {
	if g.Price.Secure > 0 {
		g.MaxSecure = cmp.Or(g.MaxSecure, 8)
	}
	if g.Price.Community > 0 {
		g.MaxCommunity = cmp.Or(g.MaxCommunity, 4)
	}
	if g.CUDA == nil && !g.AMD {
		g.CUDA = []string{"12.4", "12.8", "13.0"}
	}
	return g
}

// reach is in how many data centers a type stands: the newest and the oldest
// are rare.
func (g GPU) reach() int {
	switch {
	case g.Price.Secure >= 4 || g.Memory < 16:
		return 2
	case g.Price.Secure >= 1.5:
		return 6
	default:
		return 10
	}
}

// spread picks n data centers, starting at another one for every i.
func spread(all []DataCenter, i, n int) []string {
	ids := make([]string, 0, n)
	for k := range n {
		ids = append(ids, all[(7*i+3*k)%len(all)].ID)
	}
	return ids
}

// defaultGPUs are the types, without what [GPU.completed] adds. Prices are secure, community and
// serverless.
func defaultGPUs() []GPU {
	blackwell := []string{"12.8", "13.0"}
	type p = Price
	return []GPU{
		{ID: "AMD Instinct MI300X OAM", Name: "MI300X", Memory: 192, Price: p{2.49, 0, 0}, VCPU: 24, RAM: 283, AMD: true},
		{ID: "NVIDIA A100 80GB PCIe", Name: "A100 PCIe", Pool: "AMPERE_80", Memory: 80, Price: p{1.64, 1.19, 2.736}, VCPU: 8, RAM: 117},
		{ID: "NVIDIA A100-SXM4-80GB", Name: "A100 SXM", Pool: "AMPERE_80", Memory: 80, Price: p{1.89, 1.39, 2.736}, MaxCommunity: 8, VCPU: 16, RAM: 125},
		{ID: "NVIDIA A30", Name: "A30", Memory: 24, Price: p{0, 0.22, 0}, MaxCommunity: 8, VCPU: 8, RAM: 31},
		{ID: "NVIDIA A40", Name: "A40", Pool: "AMPERE_48", Memory: 48, Price: p{0.40, 0.35, 1.224}, MaxSecure: 10, VCPU: 9, RAM: 50},
		{ID: "NVIDIA B200", Name: "B200", Pool: "BLACKWELL_180", Memory: 180, Price: p{5.98, 0, 8.64}, VCPU: 28, RAM: 180, CUDA: blackwell},
		{ID: "NVIDIA B300 SXM6 AC", Name: "B300", Memory: 288, Price: p{6.94, 0, 0}, VCPU: 28, RAM: 251, CUDA: blackwell},
		{ID: "NVIDIA GeForce RTX 3070", Name: "RTX 3070", Memory: 8, Price: p{0, 0.13, 0}, VCPU: 4, RAM: 12},
		{ID: "NVIDIA GeForce RTX 3080", Name: "RTX 3080", Memory: 10, Price: p{0, 0.17, 0}, VCPU: 4, RAM: 15},
		{ID: "NVIDIA GeForce RTX 3080 Ti", Name: "RTX 3080 Ti", Memory: 12, Price: p{0, 0.18, 0}, VCPU: 4, RAM: 15},
		{ID: "NVIDIA GeForce RTX 3090", Name: "RTX 3090", Pool: "AMPERE_24", Memory: 24, Price: p{0.43, 0.22, 0.684}, MaxCommunity: 8, VCPU: 8, RAM: 24},
		{ID: "NVIDIA GeForce RTX 3090 Ti", Name: "RTX 3090 Ti", Memory: 24, Price: p{0, 0.27, 0}, VCPU: 8, RAM: 24},
		{ID: "NVIDIA GeForce RTX 4070 Ti", Name: "RTX 4070 Ti", Memory: 12, Price: p{0, 0.19, 0}, VCPU: 6, RAM: 20},
		{ID: "NVIDIA GeForce RTX 4080", Name: "RTX 4080", Memory: 16, Price: p{0, 0.27, 0}, VCPU: 6, RAM: 24},
		{ID: "NVIDIA GeForce RTX 4080 SUPER", Name: "RTX 4080 SUPER", Memory: 16, Price: p{0, 0.28, 0}, VCPU: 6, RAM: 24},
		{ID: "NVIDIA GeForce RTX 4090", Name: "RTX 4090", Pool: "ADA_24", Memory: 24, Price: p{0.44, 0.31, 1.1}, VCPU: 6, RAM: 41},
		{ID: "NVIDIA GeForce RTX 5080", Name: "RTX 5080", Memory: 16, Price: p{0, 0.39, 0}, VCPU: 6, RAM: 28, CUDA: blackwell},
		{ID: "NVIDIA GeForce RTX 5090", Name: "RTX 5090", Pool: "ADA_32_PRO", Memory: 32, Price: p{0.89, 0.69, 1.58}, VCPU: 12, RAM: 46, CUDA: blackwell},
		{ID: "NVIDIA H100 80GB HBM3", Name: "H100 SXM", Pool: "ADA_80_PRO", Memory: 80, Price: p{2.99, 2.69, 4.176}, MaxCommunity: 8, VCPU: 20, RAM: 125},
		{ID: "NVIDIA H100 NVL", Name: "H100 NVL", Pool: "ADA_80_PRO", Memory: 94, Price: p{2.79, 2.59, 4.176}, VCPU: 16, RAM: 94},
		{ID: "NVIDIA H100 PCIe", Name: "H100 PCIe", Pool: "ADA_80_PRO", Memory: 80, Price: p{2.39, 1.99, 4.176}, VCPU: 16, RAM: 188},
		{ID: "NVIDIA H200", Name: "H200 SXM", Pool: "HOPPER_141", Memory: 141, Price: p{3.99, 3.59, 5.58}, MaxCommunity: 8, VCPU: 24, RAM: 188},
		{ID: "NVIDIA H200 NVL", Name: "NVIDIA H200 NVL", Memory: 143, Price: p{3.39, 0, 0}, VCPU: 16, RAM: 188},
		{ID: "NVIDIA L4", Name: "L4", Pool: "AMPERE_24", Memory: 24, Price: p{0.43, 0.39, 0.684}, VCPU: 12, RAM: 50},
		{ID: "NVIDIA L40", Name: "L40", Pool: "ADA_48_PRO", Memory: 48, Price: p{0.99, 0.69, 1.908}, VCPU: 8, RAM: 94},
		{ID: "NVIDIA L40S", Name: "L40S", Pool: "ADA_48_PRO", Memory: 48, Price: p{0.86, 0.79, 1.908}, VCPU: 16, RAM: 62},
		{ID: "NVIDIA RTX 2000 Ada Generation", Name: "RTX 2000 Ada", Pool: "AMPERE_16", Memory: 16, Price: p{0.23, 0, 0.576}, VCPU: 6, RAM: 31},
		{ID: "NVIDIA RTX 4000 Ada Generation", Name: "RTX 4000 Ada", Pool: "AMPERE_16", Memory: 20, Price: p{0.26, 0.20, 0.576}, VCPU: 9, RAM: 50},
		{ID: "NVIDIA RTX 4000 SFF Ada Generation", Name: "RTX 4000 Ada SFF", Memory: 20, Price: p{0, 0.18, 0}, VCPU: 8, RAM: 47},
		{ID: "NVIDIA RTX 5000 Ada Generation", Name: "RTX 5000 Ada", Memory: 32, Price: p{0.59, 0.49, 0}, VCPU: 10, RAM: 62},
		{ID: "NVIDIA RTX 6000 Ada Generation", Name: "RTX 6000 Ada", Pool: "ADA_48_PRO", Memory: 48, Price: p{0.77, 0.74, 1.908}, VCPU: 14, RAM: 62},
		{ID: "NVIDIA RTX A2000", Name: "RTX A2000", Memory: 6, Price: p{0, 0.12, 0}, VCPU: 4, RAM: 12},
		{ID: "NVIDIA RTX A4000", Name: "RTX A4000", Pool: "AMPERE_16", Memory: 16, Price: p{0.25, 0.17, 0.576}, VCPU: 9, RAM: 50},
		{ID: "NVIDIA RTX A4500", Name: "RTX A4500", Pool: "AMPERE_16", Memory: 20, Price: p{0.25, 0.19, 0.576}, VCPU: 12, RAM: 54},
		{ID: "NVIDIA RTX A5000", Name: "RTX A5000", Pool: "AMPERE_24", Memory: 24, Price: p{0.27, 0.16, 0.684}, VCPU: 9, RAM: 25},
		{ID: "NVIDIA RTX A6000", Name: "RTX A6000", Pool: "AMPERE_48", Memory: 48, Price: p{0.49, 0.33, 1.224}, VCPU: 9, RAM: 50},
		{ID: "NVIDIA RTX PRO 4500 Blackwell", Name: "RTX PRO 4500", Memory: 32, Price: p{0.64, 0, 0}, VCPU: 8, RAM: 62, CUDA: blackwell},
		{ID: "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", Name: "RTX PRO 6000 MaxQ", Memory: 96, Price: p{1.59, 0, 0}, VCPU: 16, RAM: 125, CUDA: blackwell},
		{ID: "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", Name: "PRO 6000 MIG 24GB", Memory: 24, Price: p{0.54, 0, 0}, MaxSecure: 1, VCPU: 4, RAM: 31, CUDA: blackwell},
		{ID: "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb", Name: "PRO 6000 MIG 48GB", Memory: 48, Price: p{0.99, 0, 0}, MaxSecure: 1, VCPU: 8, RAM: 62, CUDA: blackwell},
		{ID: "NVIDIA RTX PRO 6000 Blackwell Server Edition", Name: "RTX PRO 6000", Pool: "BLACKWELL_96", Memory: 96, Price: p{1.84, 0, 3.996}, VCPU: 16, RAM: 188, CUDA: blackwell},
		{ID: "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", Name: "RTX PRO 6000 WK", Pool: "BLACKWELL_96", Memory: 96, Price: p{2.09, 1.69, 3.996}, VCPU: 16, RAM: 125, CUDA: blackwell},
		{ID: "Tesla V100-PCIE-16GB", Name: "Tesla V100", Memory: 16, Price: p{0, 0.19, 0}, VCPU: 6, RAM: 43},
		{ID: "Tesla V100-SXM2-16GB", Name: "V100 SXM2", Memory: 16, Price: p{0, 0.23, 0}, MaxCommunity: 8, VCPU: 10, RAM: 30},
		{ID: "Tesla V100-SXM2-32GB", Name: "V100 SXM2 32GB", Memory: 32, Price: p{0, 0.24, 0}, MaxCommunity: 8, VCPU: 20, RAM: 60},
	}
}

func defaultCPUs() []CPU {
	return []CPU{
		{ID: "cpu3c", Name: "Compute-Optimized 3", Group: "Compute-Optimized", RAMPerVCPU: 2, Secure: 0.04, Serverless: 0.03},
		{ID: "cpu3g", Name: "General Purpose 3", Group: "General Purpose", RAMPerVCPU: 4, Secure: 0.05, Serverless: 0.04},
		{ID: "cpu5c", Name: "Compute-Optimized 5", Group: "Compute-Optimized", RAMPerVCPU: 2, Secure: 0.05, Serverless: 0.04},
		{ID: "cpu5g", Name: "General Purpose 5", Group: "General Purpose", RAMPerVCPU: 4, Secure: 0.06, Serverless: 0.05},
	}
}

func defaultDataCenters() []DataCenter {
	standard, both, none := []string{"STANDARD"}, []string{"STANDARD", "HIGH_PERFORMANCE"}, []string(nil)
	us := []string{"SOC_2_TYPE_2", "ISO_IEC_27001"}
	bank := []string{"SOC_1_TYPE_2", "SOC_2_TYPE_2", "PCI_DSS", "HIPAA"}
	eu := []string{"GDPR", "ISO_IEC_27001"}
	green := []string{"GDPR", "ISO_IEC_27001", "ISO_14001", "RENEWABLE"}
	return []DataCenter{
		{ID: "AP-JP-1", Region: "ASIA", Country: "JP", VolumeTypes: standard, Compliance: []string{"ISO_IEC_27001"}},
		{ID: "CA-MTL-1", Region: "NORTH_AMERICA", Country: "CA", VolumeTypes: standard, Compliance: us},
		{ID: "CA-MTL-2", Region: "NORTH_AMERICA", Country: "CA", VolumeTypes: none, Compliance: us},
		{ID: "CA-MTL-3", Region: "NORTH_AMERICA", Country: "CA", VolumeTypes: both, Compliance: us, GlobalNetwork: true},
		{ID: "EU-CZ-1", Region: "EUROPE", Country: "CZ", VolumeTypes: standard, Compliance: eu, GlobalNetwork: true},
		{ID: "EU-FR-1", Region: "EUROPE", Country: "FR", VolumeTypes: standard, Compliance: eu, GlobalNetwork: true},
		{ID: "EU-NL-1", Region: "EUROPE", Country: "NL", VolumeTypes: standard, Compliance: eu, GlobalNetwork: true},
		{ID: "EU-RO-1", Region: "EUROPE", Country: "RO", VolumeTypes: both, Compliance: eu, GlobalNetwork: true},
		{ID: "EU-SE-1", Region: "EUROPE", Country: "SE", VolumeTypes: standard, Compliance: green, GlobalNetwork: true},
		{ID: "EUR-IS-1", Region: "EUROPE", Country: "IS", VolumeTypes: standard, Compliance: green},
		{ID: "EUR-IS-2", Region: "EUROPE", Country: "IS", VolumeTypes: standard, Compliance: green, GlobalNetwork: true},
		{ID: "EUR-IS-3", Region: "EUROPE", Country: "IS", VolumeTypes: none, Compliance: green},
		{ID: "EUR-NO-1", Region: "EUROPE", Country: "NO", VolumeTypes: both, Compliance: green},
		{ID: "OC-AU-1", Region: "OCEANIA", Country: "AU", VolumeTypes: none, Compliance: []string{"ISO_IEC_27001"}, GlobalNetwork: true},
		{ID: "US-CA-2", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us, GlobalNetwork: true},
		{ID: "US-DE-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: none, Compliance: us},
		{ID: "US-GA-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: bank, GlobalNetwork: true},
		{ID: "US-GA-2", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: bank, GlobalNetwork: true},
		{ID: "US-IL-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us, GlobalNetwork: true},
		{ID: "US-KS-2", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: both, Compliance: bank, GlobalNetwork: true},
		{ID: "US-KS-3", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: none, Compliance: us},
		{ID: "US-MD-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: []string{"SOC_2_TYPE_2", "ITAR", "FISMA_HIGH"}},
		{ID: "US-MO-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us},
		{ID: "US-MO-2", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: none, Compliance: us},
		{ID: "US-NC-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us, GlobalNetwork: true},
		{ID: "US-NC-2", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us},
		{ID: "US-NE-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us},
		{ID: "US-TX-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us},
		{ID: "US-TX-3", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: both, Compliance: us, GlobalNetwork: true},
		{ID: "US-TX-4", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us, GlobalNetwork: true},
		{ID: "US-WA-1", Region: "NORTH_AMERICA", Country: "US", VolumeTypes: standard, Compliance: us, GlobalNetwork: true},
	}
}

// defaultTemplates are the public templates. Client programs name two of them
// by id: runpod-torch-v280 for GPU pods, runpod-ubuntu for CPU pods.
func defaultTemplates() []PublicTemplate {
	return []PublicTemplate{
		{ID: "tplpytorch", Name: "PyTorch", Source: "official", Image: "registry.platform.test/pytorch:2.8.0-cu128", Disk: 20, PersistentGB: 20, PersistentPath: "/workspace", Ports: []string{"8888/http", "22/tcp"}, SSH: true, Jupyter: true, CUDA: []string{"12.8", "13.0"}, Category: "NVIDIA"},
		{ID: "tplubuntu1", Name: "Ubuntu", Source: "official", Image: "registry.platform.test/ubuntu:24.04", Disk: 10, Ports: []string{"22/tcp"}, Env: map[string]string{"LANG": "C.UTF-8"}, SSH: true, Category: "CPU"},
		{ID: "runpod-torch-v280", Name: "PyTorch 2.8.0", Source: "official", Image: "registry.platform.test/pytorch:1.0.2-cu1281-torch280", Disk: 20, PersistentGB: 20, PersistentPath: "/workspace", Ports: []string{"8888/http", "22/tcp"}, SSH: true, Jupyter: true, Category: "NVIDIA"},
		{ID: "runpod-ubuntu", Name: "Ubuntu 20.04", Source: "official", Image: "registry.platform.test/base:0.5.1-cpu", Disk: 5, Ports: []string{"22/tcp"}, SSH: true, Category: "CPU"},
		{ID: "tplrocm640", Name: "PyTorch ROCm", Source: "official", Image: "registry.platform.test/pytorch:2.8.0-rocm6.4", Disk: 40, Ports: []string{"8888/http", "22/tcp"}, SSH: true, Jupyter: true, Category: "AMD"},
		{ID: "tplworker1", Name: "Language model worker", Source: "official", Image: "registry.platform.test/worker-llm:2.9", Disk: 50, Serverless: true, Env: map[string]string{"MODEL_NAME": "small-chat"}, CUDA: []string{"12.8", "13.0"}, Category: "NVIDIA"},
		{ID: "tplcomfyui", Name: "Image workflows", Source: "verified", Image: "registry.platform.test/image-workflows:1.4", Disk: 30, Ports: []string{"3000/http"}, Category: "NVIDIA"},
		{ID: "tplminecra", Name: "Game server", Source: "community", Image: "registry.platform.test/game-server:1", Disk: 10, Ports: []string{"25565/tcp"}, Category: "CPU"},
	}
}
