"""What the paper reports for RealX3D, to stand beside our numbers and never to replace them."""

WHERE = "published on RealX3D"

SCENES = ("Akikaze", "Futaba", "Hinoki", "Koharu", "Midori", "Natsume", "Shirohana", "Tsubaki")


def _by_scene(**columns: tuple[float, ...]) -> dict[str, dict[str, float]]:
    return {scene: {name: values[i] for name, values in columns.items()} for i, scene in enumerate(SCENES)}


# supplement A; the stage of the pixel angles is not stated there
RANK_ONE_SCENES = _by_scene(
    rho1_p1=(0.9938, 0.9980, 0.9796, 0.9700, 0.9951, 0.9986, 0.9927, 0.9928),
    rho1_p2=(0.9799, 0.9941, 0.9391, 0.9179, 0.9851, 0.9961, 0.9798, 0.9800),
    rho1_p3=(0.9868, 0.9873, 0.9713, 0.9602, 0.9875, 0.9857, 0.9916, 0.9889),
)
RANK_ONE = {
    "rho1_p1": 0.9901,
    "rho1_p2": 0.9715,
    "rho1_p3": 0.9824,
    "rho2_p2": 0.998,
    "pixel_angle_median": 3.68,
    "pixel_angle_p90": 11.59,
    "within_p1": 0.63,
    "within_p2": 1.06,
    "between_p1": 2.29,
    "between_p2": 3.84,
    "psnr_before": 19.83,
    "psnr_after": 37.99,
    "psnr_before_range": (12.76, 26.71),
    "psnr_after_range": (35.63, 41.11),
}

# supplement B
FIDELITY_SCENES = _by_scene(
    hazy_psnr=(23.11, 25.44, 28.95, 26.32, 22.56, 28.64, 23.05, 24.86),
    hazy_ssim=(0.968, 0.967, 0.977, 0.968, 0.960, 0.983, 0.969, 0.970),
    clean_psnr=(11.97, 14.46, 7.76, 12.59, 15.49, 10.56, 9.33, 16.36),
    hazy_clean_psnr=(11.01, 13.64, 7.54, 11.94, 13.89, 9.97, 9.03, 15.51),
)
FIDELITY = {"hazy_psnr": 25.37, "hazy_ssim": 0.970, "clean_psnr": 12.32, "hazy_clean_psnr": 11.57}

# supplement F: fits of the 195 pairs in RAW without white balance; per scene the medians, over all pairs the rest
POPULATION_SCENES = _by_scene(
    t_median=(0.337, 0.289, 0.612, 0.419, 0.456, 0.156, 0.307, 0.372),
    pivot_ratio=(1.88, 1.14, 8.29, 1.47, 1.04, 1.16, 2.32, 1.38),
)
POPULATION = {"t_median": 0.36, "t_min": 0.15, "t_max": 0.90, "pivot_ratio": 1.51, "clean_median": 0.0538}

# supplement F: the round trip of an observation; how well a label undoes a veil is not printed
INVERSE = {"round_trip": "to numerical precision"}

# supplement D: the pairs that are refitted, scene to the number of the view
REFITTED = {"Hinoki": 11, "Tsubaki": 3}
# supplement D: at the identity, and at the scene means of Hinoki and Tsubaki
OBSERVABILITY = {
    "identity_directions": 69,
    "scene_mean_directions": (100, 102),
    "condition": (1e16, 1e17),
    "output_psnr": (25.1, 35.3),
    "target_psnr_median": (18.3, 20.5),
    "cosine": (0.06, 0.44),
    "relative_distance_above": 1.0,
    "probe_psnr": (14.8, 19.3),
}

# section 3.3 and supplement E
FAMILY = {
    "energy_first": 0.95,
    "energy_first_centred": 0.41,
    "nearest_cosine_median": 0.98,
    "accuracy": 0.906,
    "majority": 0.472,
    "training_views": 142,
    "validation_views": 53,
}
