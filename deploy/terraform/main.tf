# Gateways in Kubernetes: a Secret with the variables of the configuration, and a
# release of the Helm chart. The caller configures the two providers.

locals {
  chart       = coalesce(var.chart, "${path.module}/../helm/tollgate")
  environment = merge(var.secrets, { REDIS_URL = var.redis_url })
}

resource "kubernetes_secret_v1" "environment" {
  metadata {
    name      = var.name
    namespace = var.namespace
  }

  data = local.environment
}

resource "helm_release" "gateway" {
  name      = var.name
  namespace = var.namespace
  chart     = local.chart

  # An upgrade completes when its gateways are ready, and is rolled back otherwise.
  atomic  = true
  wait    = true
  timeout = 600

  values = concat([yamlencode({
    image    = var.image
    replicas = var.replicas
    autoscaling = {
      enabled     = var.max_replicas > var.replicas
      minReplicas = var.replicas
      maxReplicas = max(var.replicas, var.max_replicas)
    }
    config = var.config
    secret = kubernetes_secret_v1.environment.metadata[0].name
    podAnnotations = {
      # Gateways read environment variables at startup, so a changed secret replaces them.
      "checksum/secret" = nonsensitive(sha256(jsonencode(local.environment)))
    }
  })], var.values)
}
