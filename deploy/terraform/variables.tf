variable "name" {
  description = "Name of the release, its Deployment and its Service."
  type        = string
  default     = "tollgate"

  validation {
    # The chart appends "tollgate" to names that do not contain it.
    condition     = can(regex("^[a-z0-9-]*tollgate[a-z0-9-]*$", var.name)) && length(var.name) <= 53
    error_message = "The name must contain \"tollgate\" and have at most 53 lower-case letters, digits and hyphens."
  }
}

variable "namespace" {
  description = "Namespace of the release. It must exist."
  type        = string
}

variable "chart" {
  description = "Path of the Helm chart. Null means the chart of this repository."
  type        = string
  default     = null
}

variable "image" {
  description = "Image of the gateway. A digest overrides the tag."
  type = object({
    repository = string
    tag        = optional(string, "")
    digest     = optional(string, "")
  })

  validation {
    condition     = var.image.tag != "" || var.image.digest != ""
    error_message = "The image must have a tag or a digest."
  }
}

variable "replicas" {
  description = "Minimum number of gateways."
  type        = number
  default     = 2

  validation {
    condition     = var.replicas >= 1
    error_message = "There must be at least one gateway."
  }
}

variable "max_replicas" {
  description = "Maximum number of gateways. If it is greater than replicas, the gateways are scaled by CPU usage."
  type        = number
  default     = 8
}

variable "config" {
  description = "The configuration, as in file(\"tollgate.yaml\"). It must not contain secrets, and refers to them as environment variables ({env: NAME})."
  type        = string
}

variable "redis_url" {
  description = "URL of Redis with its credentials, for the environment variable REDIS_URL."
  type        = string
  sensitive   = true
}

variable "secrets" {
  description = "Other environment variables that the configuration refers to, such as platform keys and the admin token."
  type        = map(string)
  sensitive   = true
}

variable "values" {
  description = "Additional values of the chart, as YAML documents. They override the values of this module."
  type        = list(string)
  default     = []
}
