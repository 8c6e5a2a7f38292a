"""Drives a generated client of the GraphQL interface, runpod-ariadne.

Prints {"calls": {name: {"result": ...} or {"error": string}}, "missing": []}. The first calls
select every field that the client knows of a type, four more ask what public scripts ask
about spending, and the last send the documents of an infrastructure-as-code provider: every
argument is a variable, and only those that are set have a value.
"""

import asyncio
import inspect
import json
import os
import sys
import urllib.request

from runpod_ariadne import custom_fields, input_types
from runpod_ariadne.client import Client
from runpod_ariadne.custom_mutations import Mutation
from runpod_ariadne.custom_queries import Query

stdout, sys.stdout = sys.stdout, sys.stderr
calls = {}
client = Client(url=os.environ["GATEWAY"] + "/graphql", headers={"Authorization": "Bearer " + os.environ["KEY"]})
# Of the account, the client knows fields for owners of machines and for support, too.
HOSTS = {
    "machines", "machinesSummary", "machineEarnings", "machineEarningsCustomRange", "networkStorageEarnings", "csrRole", "impersonations", "activeImpersonation",
}


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def everything(fields, depth=2):
    """The fields of a type that the client knows, and those of the types below."""
    cls, selected = type(fields), []
    for name, value in vars(cls).items():
        if isinstance(value, classmethod) and depth > 0:
            make = getattr(cls, name)
            needed = [p for p in inspect.signature(make).parameters.values() if p.default is inspect.Parameter.empty]
            if camel(name) in HOSTS or needed and name != "billing":
                continue  # the generator loses variables of fields further down
            below = make(*(input_types.UserBillingInput(granularity="DAILY") for _ in needed))
            below._field_name = camel(below._field_name)  # the generator has lost it
            if everything(below, depth - 1)._subfields:
                selected.append(below)
        elif not name.startswith("_") and not callable(value) and hasattr(value, "_field_name") and value._field_name not in HOSTS:
            selected.append(value)
    fields._subfields = selected
    return fields


async def call(label, work):
    try:
        result = await work
    except Exception as error:
        answer = getattr(error, "response", None)
        calls[label] = {"error": f"{type(error).__name__}: {error} {answer.text if answer is not None else ''}"}
        return None
    calls[label] = {"result": result}
    return result


async def execute(document, variables=None):
    response = await client.execute(document, variables=variables or {})
    warnings = response.headers.get_list("X-Legacy-Warning")
    return {**client.get_data(response), "warned": " ".join(warnings)}


SPENDING = {
    "balances": "{ myself { clientBalance currentSpendPerHr clientLifetimeSpend underBalance minBalance spendLimit } }",
    "rates and top-ups": """{ myself { clientBalance currentSpendPerHr clientLifetimeSpend
        spendDetails { gpuComputePerHour localStoragePerHour networkStoragePerHour }
        stripeReloadHistory { id amount medium type transactionCompletedAt receiptLink } } }""",
    "inventory and days": """query { myself { clientBalance currentSpendPerHr underBalance
        pods { id name desiredStatus costPerHr adjustedCostPerHr volumeInGb containerDiskInGb networkVolumeId memoryInGb vcpuCount machine { id runpodIp } }
        networkVolumes { id name size dataCenterId } dailyCharges { updatedAt type amount podCharges diskCharges apiCharges serverlessCharges } } }""",
    "bills by the minute": """query { myself { billing(input: {granularity: MINUTELY}) { summary {
        time gpuCloudAmount cpuCloudAmount serverlessAmount storageAmount runpodEndpointAmount } } } }""",
}

# The arguments of the provider's create and update, in its order, with the types that it declares.
CREATE = (
    "aiApiId:String cloudType:CloudTypeEnum containerDiskInGb:Int countryCode:String deployCost:Float dockerArgs:String "
    "env:[EnvironmentVariableInput] gpuCount:Int gpuTypeId:String gpuTypeIdList:[String] imageName:String minDisk:Int minDownload:Int "
    "minMemoryInGb:Int minUpload:Int minVcpuCount:Int name:String networkVolumeId:String port:Port ports:String startJupyter:Boolean "
    "startSsh:Boolean stopAfter:DateTime supportPublicIp:Boolean templateId:String terminateAfter:DateTime volumeInGb:Int volumeKey:String "
    "volumeMountPath:String dataCenterId:String savingsPlan:SavingsPlanInput cudaVersion:String"
)
UPDATE = (
    "podId:String! dockerArgs:String imageName:String! env:[EnvironmentVariableInput] port:Port ports:String containerDiskInGb:Int! "
    "volumeInGb:Int volumeMountPath:String containerRegistryAuthId:String"
)


def provider(operation, root, arguments):
    names = [a.split(":") for a in arguments.split()]
    declared = " ".join(f"${name}: {kind}" for name, kind in names)
    given = " ".join(f"{name}: ${name}," for name, _ in names)
    return f"mutation {operation} ({declared}) {{ {root}(input: {{ {given} }}) {{ id imageName machineId containerDiskInGb }} }}"


async def main():
    wanted = input_types.PodFindAndDeployOnDemandInput(
        name="a", imageName="img:1", gpuTypeId="NVIDIA L4", cloudType="SECURE", gpuCount=1, containerDiskInGb=15, ports="22/tcp"
    )
    made = await call("create", client.mutation(Mutation.pod_find_and_deploy_on_demand(input=wanted).fields(custom_fields.PodFields.id), operation_name="Create"))
    pod = made["podFindAndDeployOnDemand"]["id"]
    body = json.dumps({"advance": "10h"}).encode()  # for which there is a bill
    urllib.request.urlopen(urllib.request.Request(os.environ["CONTROL"] + "/clock", body), timeout=10).close()
    named = input_types.PodFilter(podId=pod)
    await call("pod", client.query(everything(Query.pod(input=named)), operation_name="Pod"))
    kind = input_types.GpuTypeFilter(id="NVIDIA L4")
    offer = everything(Query.gpu_types(input=kind), 0)
    price = everything(custom_fields.GpuTypeFields.lowest_price(input=input_types.GpuLowestPriceInput(gpuCount=1)), 0)
    price._field_name = "lowestPrice"
    offer._subfields.append(price)
    await call("gpu types", client.query(offer, operation_name="Offers"))
    await call("cpu types", client.query(everything(Query.cpu_types()), operation_name="Cpus"))
    await call("myself", client.query(everything(Query.myself(), 1), operation_name="Account"))
    for name, document in SPENDING.items():
        await call(name, execute(document))
    made = await call("provider create", execute(provider("DeployMutation", "podFindAndDeployOnDemand", CREATE), {
        "gpuCount": 1, "gpuTypeId": "NVIDIA L4", "imageName": "img:1", "name": "b", "cloudType": "SECURE", "volumeInGb": 20, "containerDiskInGb": 20,
        "env": [{"key": "A", "value": "1"}],
    }))
    other = made and made["podFindAndDeployOnDemand"]["id"]
    await call("provider update", execute(provider("UpdatePodMutation", "podEditJob", UPDATE), {
        "podId": other, "imageName": "img:2", "containerDiskInGb": 20, "volumeInGb": 20, "gpuCount": 1, "gpuTypeId": "NVIDIA L4", "name": "b", "env": [{"key": "A", "value": "2"}],
    }))
    for label, pod_id in (("terminate", pod), ("terminate the provider's", other)):
        await call(label, execute("mutation($input: PodTerminateInput!) { podTerminate(input: $input) }", {"input": {"podId": pod_id}}))


asyncio.run(main())
print(json.dumps({"calls": calls, "missing": []}), file=stdout, flush=True)
