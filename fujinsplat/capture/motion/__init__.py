"""Structure from motion, for scenes that bring no poses or no points of their own."""
